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
  const low = [1e9, 1e9, 1e9], high = [-1e9, -1e9, -1e9];
  data.frames.forEach(function (points) {
    points.forEach(function (p) {
      for (let k = 0; k < 3; k++) { low[k] = Math.min(low[k], p[k]); high[k] = Math.max(high[k], p[k]); }
    });
  });
  const middle = low.map(function (x, k) { return 0.5 * (x + high[k]); });
  const size = Math.max(1e-6, Math.hypot(high[0] - low[0], high[1] - low[1], high[2] - low[2]));
  const scale = 0.9 * Math.min(canvas.width, canvas.height) / size;
  function shown(p) {
    const x = p[0] - middle[0], y = p[1] - middle[1], z = p[2] - middle[2];
    const a = Math.cos(yaw) * x + Math.sin(yaw) * y, b = -Math.sin(yaw) * x + Math.cos(yaw) * y;
    return [canvas.width / 2 + scale * b, canvas.height / 2 - scale * (Math.cos(pitch) * z - Math.sin(pitch) * a)];
  }
  function line(points, colour, width) {
    pen.strokeStyle = colour; pen.lineWidth = width; pen.beginPath();
    points.forEach(function (p, k) { const s = shown(p); if (k) { pen.lineTo(s[0], s[1]); } else { pen.moveTo(s[0], s[1]); } });
    pen.stroke();
  }
  function draw() {
    const points = data.frames[frame];
    pen.clearRect(0, 0, canvas.width, canvas.height);
    line(data.frames.map(function (f) { return f[data.tip]; }), "#b4c6d8", 1);
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
    draw();
  });
  draw();
  window.requestAnimationFrame(step);
})();
