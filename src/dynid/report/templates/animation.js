"use strict";
(function () {
  const holder = document.getElementById("animation-data");
  if (!holder) { return; }
  const data = JSON.parse(holder.textContent);
  const canvas = document.getElementById("animation"), pen = canvas.getContext("2d");
  const slider = document.getElementById("frame"), button = document.getElementById("play");
  const time = document.getElementById("time");
  const count = data.frames.length;
  let yaw = 0.7, pitch = 0.35, frame = 0, running = true, last = 0, held = null;
  slider.max = count - 1;
  let middle = [0, 0], scale = 1;
  function turned(p) {
    const a = Math.cos(yaw) * p[0] + Math.sin(yaw) * p[1];
    return [-Math.sin(yaw) * p[0] + Math.cos(yaw) * p[1], Math.cos(pitch) * p[2] - Math.sin(pitch) * a];
  }
  // The whole motion fits into the picture, seen from wherever it is.
  function fit() {
    const low = [1e9, 1e9], high = [-1e9, -1e9];
    data.frames.forEach(function (points) {
      points.forEach(function (p) {
        const s = turned(p);
        for (let k = 0; k < 2; k++) { low[k] = Math.min(low[k], s[k]); high[k] = Math.max(high[k], s[k]); }
      });
    });
    middle = [0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1])];
    scale = 0.9 * Math.min(canvas.width / Math.max(1e-6, high[0] - low[0]), canvas.height / Math.max(1e-6, high[1] - low[1]));
  }
  function shown(p) {
    const s = turned(p);
    return [canvas.width / 2 + scale * (s[0] - middle[0]), canvas.height / 2 - scale * (s[1] - middle[1])];
  }
  function line(points, colour, width) {
    pen.strokeStyle = colour; pen.lineWidth = width; pen.beginPath();
    points.forEach(function (p, k) { const s = shown(p); if (k) { pen.lineTo(s[0], s[1]); } else { pen.moveTo(s[0], s[1]); } });
    pen.stroke();
  }
  function draw() {
    const points = data.frames[frame];
    pen.clearRect(0, 0, canvas.width, canvas.height);
    for (let k = 0; k < count; k += data.run) {
      line(data.frames.slice(k, k + data.run).map(function (f) { return f[data.tip]; }), "#8fb0cc", 1.5);
    }
    data.ground.forEach(function (e) { line([points[e[0]], points[e[1]]], "#9aa5b1", 2); });
    data.edges.forEach(function (e) { line([points[e[0]], points[e[1]]], "#0072b2", 4); });
    pen.fillStyle = "#d55e00";
    points.forEach(function (p) { const s = shown(p); pen.beginPath(); pen.arc(s[0], s[1], 4, 0, 7); pen.fill(); });
    slider.value = frame;
    time.textContent = (data.period * frame / (count - 1)).toFixed(2) + " s";
  }
  function step(now) {
    if (running && now - last > 1000 * data.period / count) { last = now; frame = (frame + 1) % count; draw(); }
    window.requestAnimationFrame(step);
  }
  slider.addEventListener("input", function () { running = false; button.textContent = "play"; frame = +slider.value; draw(); });
  button.addEventListener("click", function () { running = !running; button.textContent = running ? "pause" : "play"; });
  canvas.addEventListener("pointerdown", function (e) { held = [e.clientX, e.clientY, yaw, pitch]; });
  window.addEventListener("pointerup", function () { held = null; });
  window.addEventListener("pointermove", function (e) {
    if (!held) { return; }
    yaw = held[2] + 0.01 * (e.clientX - held[0]);
    pitch = Math.max(-1.5, Math.min(1.5, held[3] + 0.01 * (e.clientY - held[1])));
    fit();
    draw();
  });
  const heights = data.frames.map(function (points) { return points.map(function (p) { return p[2]; }); }).flat();
  if (Math.max.apply(null, heights) - Math.min.apply(null, heights) < 1e-6) { yaw = -Math.PI / 2; pitch = 1.45; } // flat: from above
  fit();
  draw();
  window.requestAnimationFrame(step);
})();
