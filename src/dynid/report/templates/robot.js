"use strict";
// The robot along a motion: capsules, cables, joints coloured by a share, ellipsoids, floor; orbit by mouse, touch and keys.
(function (dynid) {
  const holder = document.getElementById("robot-data");
  if (!holder) { return; }
  const data = JSON.parse(holder.textContent), canvas = document.getElementById("robot"), pen = canvas.getContext("2d");
  const slider = document.getElementById("robot-frame"), button = document.getElementById("robot-play"), clock = document.getElementById("robot-time");
  const choice = document.getElementById("robot-log"), massBox = document.getElementById("robot-mass"), readout = document.getElementById("robot-read");
  let yaw = -0.9, pitch = 0.42, zoom = 1, frame = 0, running = false, last = 0, held = null, middle = [0, 0, 0], size = 1, log = null, seen = true;

  function load(k) {
    const one = data.logs[k];
    log = { n: one.n, t: dynid.unpack(one.t), p: dynid.unpack(one.p), R: dynid.unpack(one.R), share: one.share.map(dynid.unpack), phases: one.phases, extra: one.extra.map(function (e) { return { name: e.name, unit: e.unit, v: dynid.unpack(e.v) }; }), near: one.near.map(function (e) { return { bodies: e.bodies, names: e.names, which: e.which, v: dynid.unpack(e.v) }; }) };
    slider.max = log.n - 1; frame = Math.min(frame, log.n - 1);
    const low = [1e9, 1e9, 1e9], high = [-1e9, -1e9, -1e9];
    function see(w) { for (let c = 0; c < 3; c++) { low[c] = Math.min(low[c], w[c]); high[c] = Math.max(high[c], w[c]); } }
    for (let f = 0; f < log.n; f += Math.max(1, Math.floor(log.n / 25))) { pieces(f).forEach(function (s) { see(s.a); see(s.b); }); }
    if (low[0] > high[0]) { see([-0.5, -0.5, 0]); see([0.5, 0.5, 1]); }
    middle = [0, 1, 2].map(function (c) { return 0.5 * (low[c] + high[c]); });
    size = Math.max(1e-3, Math.hypot(high[0] - low[0], high[1] - low[1], high[2] - low[2]));
    floor = data.floor === null ? Math.min(0, low[2]) : data.floor;
    const away = floor - dot(up, middle); // the plane below the middle of the robot
    foot = [0, 1, 2].map(function (c) { return middle[c] + away * up[c]; });
    aim(high[2] - low[2] < 0.02 * size);
  }
  // Look across the direction in which the robot is widest, from slightly above; the whole motion fits.
  function aim(flat) {
    const all = [];
    for (let f = 0; f < log.n; f += Math.max(1, Math.floor(log.n / 25))) { pieces(f).forEach(function (s) { all.push(s.a, s.b); }); }
    let xx = 0, xy = 0, yy = 0, wide = 1e-6, tall = 1e-6;
    all.forEach(function (w) { const x = w[0] - middle[0], y = w[1] - middle[1]; xx += x * x; xy += x * y; yy += y * y; });
    yaw = flat ? 0 : 0.5 * Math.atan2(2 * xy, xx - yy) + 0.45; pitch = flat ? 1.35 : 0.42;
    all.forEach(function (w) { const v = view(w), k = 1.1 / Math.max(0.4, 1 + v[2] / (3.5 * size)); wide = Math.max(wide, k * Math.abs(v[0])); tall = Math.max(tall, k * Math.abs(v[1])); });
    reach = [wide, tall];
  }
  let reach = [1, 1];
  let floor = 0, foot = [0, 0, 0];
  // Two directions of the floor; its normal is opposite to gravity.
  const up = data.floor === null ? [0, 0, 1] : data.up, first = unit(Math.abs(up[0]) < 0.9 ? [1 - up[0] * up[0], -up[0] * up[1], -up[0] * up[2]] : [-up[1] * up[0], 1 - up[1] * up[1], -up[1] * up[2]]);
  const second = [up[1] * first[2] - up[2] * first[1], up[2] * first[0] - up[0] * first[2], up[0] * first[1] - up[1] * first[0]];
  function dot(a, b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
  function unit(a) { const n = Math.sqrt(dot(a, a)); return a.map(function (x) { return x / n; }); }
  function onFloor(x, y) { return project([0, 1, 2].map(function (c) { return foot[c] + x * first[c] + y * second[c]; })); }
  function turn(q, v) {
    const w = q[0], x = q[1], y = q[2], z = q[3];
    const tx = 2 * (y * v[2] - z * v[1]), ty = 2 * (z * v[0] - x * v[2]), tz = 2 * (x * v[1] - y * v[0]);
    return [v[0] + w * tx + y * tz - z * ty, v[1] + w * ty + z * tx - x * tz, v[2] + w * tz + x * ty - y * tx];
  }
  function world(f, body, v) {
    if (body < 0) { return v; }
    const b = data.bodies.length, i = f * b + body, q = [log.R[4 * i], log.R[4 * i + 1], log.R[4 * i + 2], log.R[4 * i + 3]], r = turn(q, v);
    return [r[0] + log.p[3 * i], r[1] + log.p[3 * i + 1], r[2] + log.p[3 * i + 2]];
  }
  function pieces(f) {
    const found = [];
    data.links.forEach(function (l) { found.push({ kind: "link", body: l.body, a: world(f, l.body, l.a), b: world(f, l.body, l.b), r: data.thick }); });
    data.capsules.forEach(function (l) { found.push({ kind: l.body < 0 ? "ground" : "link", body: l.body, a: world(f, l.body, l.a), b: world(f, l.body, l.b), r: l.r }); });
    data.rods.forEach(function (l) { found.push({ kind: "rod", a: world(f, l.from, l.a), b: world(f, l.to, l.b), r: 0.4 * data.thick }); });
    data.cables.forEach(function (l, k) { found.push({ kind: "cable", cable: k, a: world(f, l.from, l.a), b: world(f, l.to, l.b), r: 0 }); });
    return found;
  }
  function view(w) {
    const x = w[0] - middle[0], y = w[1] - middle[1], z = w[2] - middle[2];
    const cy = Math.cos(yaw), sy = Math.sin(yaw), a = cy * x + sy * y, b = -sy * x + cy * y;
    const cp = Math.cos(pitch), sp = Math.sin(pitch);
    // b points away from the eye at zero pitch
    return [a, cp * z + sp * b, cp * b - sp * z];
  }
  function project(w) {
    const v = view(w), eye = 3.5 * size, k = eye / Math.max(0.2 * eye, eye + v[2]), s = scale();
    return [canvas.width / 2 + s * k * v[0], canvas.height / 2 - s * k * v[1], v[2], s * k];
  }
  function scale() { return 0.46 * zoom * Math.min(canvas.width / reach[0], canvas.height / reach[1]); }
  function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function heat(share) {
    const k = Math.max(0, Math.min(1, share / data.full)), stops = [[0, 158, 115], [230, 180, 30], [213, 60, 0]], i = k < 0.5 ? 0 : 1, f = 2 * k - i;
    return "rgb(" + [0, 1, 2].map(function (c) { return Math.round(stops[i][c] + (stops[i + 1][c] - stops[i][c]) * f); }).join(",") + ")";
  }
  function capsule(a, b, r, fill, edge) {
    const width = Math.max(2, 2 * r * 0.5 * (a[3] + b[3]));
    pen.lineCap = "round";
    [[width + 2 * ratio(), edge], [width, fill]].forEach(function (one) { pen.lineWidth = one[0]; pen.strokeStyle = one[1]; pen.beginPath(); pen.moveTo(a[0], a[1]); pen.lineTo(b[0], b[1]); pen.stroke(); });
    pen.globalAlpha = 0.28; pen.strokeStyle = "#fff"; pen.lineWidth = width * 0.3;
    pen.beginPath(); pen.moveTo(a[0] - width * 0.14, a[1] - width * 0.18); pen.lineTo(b[0] - width * 0.14, b[1] - width * 0.18); pen.stroke(); pen.globalAlpha = 1;
  }
  function ratio() { return window.devicePixelRatio || 1; }
  function ball(c, r, fill) {
    const g = pen.createRadialGradient(c[0] - 0.35 * r, c[1] - 0.35 * r, 0.1 * r, c[0], c[1], r);
    g.addColorStop(0, "#fff"); g.addColorStop(0.35, fill); g.addColorStop(1, fill);
    pen.fillStyle = g; pen.strokeStyle = "rgba(0,0,0,0.45)"; pen.lineWidth = ratio();
    pen.beginPath(); pen.arc(c[0], c[1], r, 0, 7); pen.fill(); pen.stroke();
  }
  // Outline of an ellipsoid: P A P^T with A = sum of its squared half axes, P the projection.
  function ellipsoid(e) {
    const c = project(world(frame, e.body, e.c)), m = [0, 0, 0];
    for (let k = 0; k < 3; k++) {
      const v = [0, 0, 0]; v[k] = e.half[k];
      const tip = turn(e.axes, v), end = world(frame, e.body, [e.c[0] + tip[0], e.c[1] + tip[1], e.c[2] + tip[2]]), o = world(frame, e.body, e.c);
      const a = view(end), b = view(o), x = c[3] * (a[0] - b[0]), y = -c[3] * (a[1] - b[1]);
      m[0] += x * x; m[1] += x * y; m[2] += y * y;
    }
    const mean = (m[0] + m[2]) / 2, off = Math.hypot((m[0] - m[2]) / 2, m[1]);
    pen.beginPath();
    pen.ellipse(c[0], c[1], Math.sqrt(Math.max(1, mean + off)), Math.sqrt(Math.max(1, mean - off)), 0.5 * Math.atan2(2 * m[1], m[0] - m[2]), 0, 7);
    pen.fillStyle = "rgba(204,121,167,0.35)"; pen.strokeStyle = "rgba(170,70,130,0.9)"; pen.lineWidth = 1.2 * ratio(); pen.fill(); pen.stroke();
  }
  // Bodies whose distance is small now: amber, and red where they touch.
  function tight() {
    const found = {};
    log.near.forEach(function (e) {
      if (e.v[frame] < 0.015 * size) { e.bodies[e.which[frame]].forEach(function (body) { found[body] = found[body] === "red" || e.v[frame] < 0 ? "red" : "orange"; }); }
    });
    return found;
  }
  function grid() {
    const raw = size / 8, power = Math.pow(10, Math.floor(Math.log10(raw))), step = power * (raw / power < 2 ? 1 : raw / power < 5 ? 2 : 5), n = Math.ceil(0.6 * size / step);
    if (data.floor !== null) {
      pen.fillStyle = css("--p-grid"); pen.globalAlpha = 0.45; pen.beginPath();
      [[-1, -1], [1, -1], [1, 1], [-1, 1]].forEach(function (c) { const v = onFloor(c[0] * n * step, c[1] * n * step); pen.lineTo(v[0], v[1]); });
      pen.fill(); pen.globalAlpha = 1;
    }
    pen.strokeStyle = css("--p-grid"); pen.lineWidth = ratio();
    for (let k = -n; k <= n; k++) {
      [[[k * step, -n * step], [k * step, n * step]], [[-n * step, k * step], [n * step, k * step]]].forEach(function (l) {
        const a = onFloor(l[0][0], l[0][1]), b = onFloor(l[1][0], l[1][1]);
        pen.beginPath(); pen.moveTo(a[0], a[1]); pen.lineTo(b[0], b[1]); pen.stroke();
      });
    }
    return step;
  }
  function draw() {
    const shapes = pieces(frame), link = css("--robot"), edge = css("--robot-edge"), close = tight();
    pen.clearRect(0, 0, canvas.width, canvas.height);
    const step = grid();
    if (data.tip >= 0) {
      pen.strokeStyle = css("--p-sky"); pen.lineWidth = 1.4 * ratio(); pen.beginPath();
      const gap = 2.5 * (log.t[log.n - 1] - log.t[0]) / log.n;
      for (let f = 0; f < log.n; f++) { const c = project(world(f, data.tip, data.tip_at)); if (f && log.t[f] > log.t[f - 1] && log.t[f] - log.t[f - 1] < gap) { pen.lineTo(c[0], c[1]); } else { pen.moveTo(c[0], c[1]); } }
      pen.stroke();
    }
    const list = shapes.map(function (s) {
      const a = project(s.a), b = project(s.b), fill = close[s.body] ? css("--p-" + close[s.body]) : s.kind === "ground" ? css("--p-grey") : link;
      return { z: 0.5 * (a[2] + b[2]), go: function () {
        if (s.kind === "cable") {
          const k = data.cables[s.cable].effort, v = k >= 0 ? log.share[k][frame] : NaN;
          pen.strokeStyle = v === v ? heat(v) : css("--muted"); pen.lineWidth = 2 * ratio(); pen.beginPath(); pen.moveTo(a[0], a[1]); pen.lineTo(b[0], b[1]); pen.stroke();
          if (data.cables[s.cable].r > 0) { pen.strokeStyle = css("--muted"); pen.beginPath(); pen.arc(a[0], a[1], Math.max(4 * ratio(), data.cables[s.cable].r * a[3]), 0, 7); pen.stroke(); } else { ball(a, 3.5 * ratio(), "#8a94a0"); }
        } else { capsule(a, b, s.r, fill, edge); }
      } };
    });
    data.joints.forEach(function (j) {
      const c = project(world(frame, j.body, j.at)), v = j.effort >= 0 ? log.share[j.effort][frame] : NaN;
      const r = (j.effort >= 0 ? 1.45 : 0.8) * data.thick * c[3];
      // A large error is not hidden behind a body.
      list.push({ z: v > 0.5 * data.full ? -Infinity : c[2] - data.thick, go: function () { ball(c, Math.max((j.effort >= 0 ? 5 : 2.5) * ratio(), r), v === v ? heat(v) : j.effort >= 0 ? "#6b7785" : "#9aa5b1"); } });
    });
    list.sort(function (a, b) { return b.z - a.z; }).forEach(function (one) { one.go(); });
    if (massBox && massBox.checked) { data.ellipsoids.forEach(ellipsoid); }
    pen.fillStyle = css("--muted"); pen.font = 12 * ratio() + "px system-ui, sans-serif";
    pen.fillText("grid " + dynid.text(step >= 1 ? step : 1000 * step, 2) + (step >= 1 ? " m" : " mm") + (data.floor === null ? "" : ", floor at height " + dynid.text(data.floor, 3) + " m" + (data.assumed ? " (assumed)" : "")), 8 * ratio(), canvas.height - 8 * ratio());
    slider.value = frame;
    const now = log.t[frame] - log.t[0], phase = log.phases.find(function (one) { return now <= one[1] + 1e-9; });
    clock.textContent = now.toFixed(2) + " s" + (phase ? ", " + phase[0] : "");
    slider.setAttribute("aria-valuetext", clock.textContent);
    let worst = -1, most = -1;
    const driven = data.joints.concat(data.cables);
    driven.forEach(function (j, k) { const v = j.effort >= 0 ? log.share[j.effort][frame] : NaN; if (v > most) { most = v; worst = k; } });
    const parts = worst >= 0 ? [data.words[0] + driven[worst].name + ", " + dynid.text(most, 2) + data.words[1]] : [];
    log.extra.forEach(function (e) { parts.push(e.name + " " + dynid.text(e.v[frame], 3) + " " + e.unit); });
    log.near.forEach(function (e) { parts.push("smallest distance " + dynid.text(1000 * e.v[frame], 3) + " mm, " + e.names[e.which[frame]]); });
    readout.textContent = parts.join("; ");
  }
  function fit() {
    const width = canvas.clientWidth || 300;
    canvas.width = width * ratio(); canvas.height = Math.round(Math.min(460, Math.max(260, 0.55 * width))) * ratio();
    canvas.style.height = canvas.height / ratio() + "px";
    draw();
  }
  function play(on) { running = on; button.textContent = on ? "Pause" : "Play"; button.setAttribute("aria-pressed", String(on)); if (on) { last = 0; window.requestAnimationFrame(step); } }
  function step(now) {
    if (!running) { return; }
    const span = Math.max(1e-3, log.t[log.n - 1] - log.t[0]);
    const wait = 1000 * Math.min(span, 30) / log.n;
    if (!last || now - last >= wait) { if (last && seen) { frame = (frame + 1) % log.n; draw(); } last = now; }
    window.requestAnimationFrame(step);
  }
  slider.addEventListener("input", function () { play(false); frame = +slider.value; draw(); });
  button.addEventListener("click", function () { play(!running); });
  if (choice) { choice.addEventListener("change", function () { load(+choice.value); draw(); }); }
  if (massBox) { massBox.addEventListener("change", draw); }
  canvas.addEventListener("pointerdown", function (e) { held = [e.clientX, e.clientY, yaw, pitch]; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointerup", function () { held = null; });
  canvas.addEventListener("pointermove", function (e) {
    if (!held) { return; }
    yaw = held[2] - 0.01 * (e.clientX - held[0]);
    pitch = Math.max(-1.5, Math.min(1.5, held[3] + 0.01 * (e.clientY - held[1])));
    draw();
  });
  canvas.addEventListener("wheel", function (e) { if (e.ctrlKey) { e.preventDefault(); zoom = Math.max(0.3, Math.min(8, zoom * Math.exp(-0.002 * e.deltaY))); draw(); } }, { passive: false });
  canvas.addEventListener("keydown", function (e) {
    const known = { ArrowLeft: function () { yaw += 0.12; }, ArrowRight: function () { yaw -= 0.12; }, ArrowUp: function () { pitch = Math.min(1.5, pitch + 0.12); }, ArrowDown: function () { pitch = Math.max(-1.5, pitch - 0.12); }, "+": function () { zoom = Math.min(8, zoom * 1.2); }, "-": function () { zoom = Math.max(0.3, zoom / 1.2); }, " ": function () { play(!running); } }[e.key];
    if (known) { e.preventDefault(); known(); draw(); }
  });
  new ResizeObserver(fit).observe(canvas.parentNode);
  new IntersectionObserver(function (entries) { seen = entries[0].isIntersecting; }).observe(canvas);
  dynid.redrawRobot = draw;
  load(0);
  // The largest residual is seen first.
  frame = Math.floor(log.n / 3);
  log.share.reduce(function (most, one) { one.forEach(function (v, f) { if (v > most) { most = v; frame = f; } }); return most; }, 0);
  fit();
  if (!window.matchMedia("(prefers-reduced-motion: reduce)").matches && !navigator.webdriver) { play(true); }
})(window.dynid);
