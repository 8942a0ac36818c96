"use strict";
// The page of `dynid studio`: shows the state of the session and sends what was asked. Texts are never parsed as HTML.
(function () {
  const base = location.pathname.replace(/[^/]*$/, ""), reading = "/" + id("load").dataset.reading + "/";
  const boxes = ["period", "floor", "clearance", "home", "search", "starts", "after", "controllers", "controller_rate"]; // of a motion
  let kept = []; // what the motion of an opened file is in addition to
  let state = null, listed = 0, drawn = -1, shownResults = "", shownMotions = "", shownOffers = "", dismissed = false, suggested = {}, timer = 0, turn = Promise.resolve(), lost = false, held = null;
  const frames = {}, webgl = speed();
  let preferred = null; // whether Viser draws; null: the usual one of this browser

  function id(name) { return document.getElementById(name); }
  function make(tag, text, more) {
    const one = document.createElement(tag);
    if (text !== undefined && text !== null) { one.textContent = String(text); }
    Object.keys(more || {}).forEach(function (key) { one.setAttribute(key, more[key]); });
    return one;
  }
  function fill(holder, children) { holder.replaceChildren.apply(holder, children); }
  function lines(name) { return id(name).value.split("\n").map(function (one) { return one.trim(); }).filter(Boolean); }
  function option(value, text, chosen) { const one = make("option", text, { value: value }); one.selected = chosen; return one; }
  function number(x) { return x === null || x === undefined ? "" : Number(x).toPrecision(4).replace(/\.?0+(e|$)/, "$1"); }
  function given(text, usual) { const value = text.trim(); return value === "" ? usual : Number.isFinite(Number(value)) ? Number(value) : value; } // other text is refused with a reason
  function short(path) { return path.startsWith(state.folder + "/") ? path.slice(state.folder.length + 1) : path; }
  function light(level) { return make("span", null, { "class": "light " + level, "aria-hidden": "true" }); }
  function words(holder, text) { // words between backticks are code
    const parts = String(text || "").split("`"), paired = parts.length % 2;
    fill(holder, paired ? parts.map(function (part, k) { return k % 2 ? make("code", part) : document.createTextNode(part); }) : [document.createTextNode(text)]);
    return holder;
  }
  function frame(name, place, solid) { // with the theme that was chosen here; `solid`: where Viser draws the same robot
    const theme = document.documentElement.dataset.theme, dark = theme ? theme === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
    const viser = Boolean(solid) && state.viser && webgl !== "none" && (preferred === null ? webgl === "fast" : preferred);
    frames[name] = [place, solid];
    id(name).hidden = false;
    if (viser) { id(name).style.height = ""; }
    id(name).src = viser ? solid + (dark ? "?darkMode" : "") : place + (theme ? (place.includes("?") ? "&" : "?") + "theme=" + theme : "");
    drawnBy(id(name + "-by"), Boolean(solid), viser);
  }
  // Who draws the robot, and how to see it drawn by the other one.
  function drawnBy(line, robot, viser) {
    const button = make("button", viser ? "Simple drawing" : "Show it with Viser", { type: "button" });
    button.addEventListener("click", function () { preferred = !viser; again(); });
    line.hidden = !robot;
    words(line, viser ? "Drawn by Viser. Drag to turn, scroll to zoom; the tree at the right shows and hides parts. "
      : !state.viser ? "Simple drawing. For solid parts and the speed of the log, end the studio, run `pip install 'dynid[view]'`, and start it again."
        : webgl === "none" ? "Simple drawing: this browser has no WebGL, which Viser needs."
          : webgl === "slow" ? "Simple drawing: WebGL is slow in this browser, without a graphics card or with reduced motion. " : "Simple drawing. ");
    if (state.viser && webgl !== "none") { line.append(button); }
  }
  function again() { Object.keys(frames).forEach(function (name) { frame(name, frames[name][0], frames[name][1]); }); }
  function speed() { // of WebGL in this browser
    const pen = document.createElement("canvas").getContext("webgl2");
    if (!pen) { return "none"; }
    const known = pen.getExtension("WEBGL_debug_renderer_info"), end = pen.getExtension("WEBGL_lose_context");
    const drawer = String(pen.getParameter(known ? known.UNMASKED_RENDERER_WEBGL : pen.RENDERER));
    if (end) { end.loseContext(); }
    return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(drawer) || window.matchMedia("(prefers-reduced-motion: reduce)").matches ? "slow" : "fast";
  }
  function trouble(text) { id("trouble").hidden = !text; words(id("trouble").firstElementChild, text); }

  function busy(name) {
    id("busy").hidden = !name;
    id("busy").firstElementChild.textContent = { load: "reading robot and logs ...", map: "reading the logs ...", settings: "changing the settings ...", open: "reading the result ..." }[name] || "please wait ...";
  }

  // One request after the other: two at once may be served in any order, and an older answer would replace a newer one.
  function ask(name, body) { function go() { return answered(name, body); } turn = turn.then(go, go); }
  function later(seconds) { window.clearTimeout(timer); timer = window.setTimeout(function () { ask("state"); }, 1000 * seconds); }
  async function answered(name, body) {
    const seen = state && ["map", "settings", "check", "excite", "identify"].includes(name) ? { revision: state.revision } : {}; // what another tab changed is not overwritten
    const request = body === undefined ? { cache: "no-store" } : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(Object.assign(seen, body)) };
    let found;
    try {
      const waits = body && window.setTimeout(function () { busy(name); }, 300);
      const answer = await fetch(base + name, request).finally(function () { window.clearTimeout(waits); busy(""); });
      if (answer.status === 403) { lost = true; trouble("This address is no longer valid: open the one that `dynid studio` printed last."); return; }
      found = await answer.json();
    } catch (error) { lost = true; trouble("The studio does not answer. If it has ended, start `dynid studio` again, and open the address that it prints."); id("job").hidden = true; later(2); return; }
    if (found.error !== undefined) { if (body !== undefined) { await answered("state"); } if (["map", "settings"].includes(name)) { showLoaded(true); } trouble(found.error); return; } // the boxes show what is used
    if (body !== undefined || lost) { trouble(""); }
    lost = false;
    show(found);
  }

  function show(found) {
    const before = state;
    state = found;
    id("folder").textContent = state.folder;
    if (!before) { first(); dismissed = Boolean(state.job && !state.job.running && !state.job.error); }
    showJob();
    showOffered();
    const changed = !before || before.revision !== state.revision;
    showLoaded(changed);
    showCheck();
    showMotions();
    showResults();
    if (changed) { showAsked(!before || before.opened !== state.opened); }
    id("lines").textContent = state.commands.join("\n");
    const robot = Boolean(state.loaded), logs = robot && state.loaded.given.length > 0, header = logs && state.loaded.columns.names.length > 0;
    [["motion", robot], ["columns", header], ["doctor", logs], ["identify", logs], ["commands", state.commands.length > 0]].forEach(function (one) {
      id(one[0]).hidden = document.querySelector('nav a[href="#' + one[0] + '"]').hidden = !one[1];
    });
    window.clearTimeout(timer);
    if (state.job && state.job.running) { later(0.4); }
  }
  function first() {
    fill(id("model"), [option("", "of the robot", true)].concat(state.models.map(function (name) { return option(name, name, false); })));
    fill(id("estimator"), [option("", "left open", true)].concat(state.estimators.map(function (name) { return option(name, name, false); })));
    [["formats", state.formats], ["controllers", state.controllers]].forEach(function (one) {
      fill(id(one[0]), one[1].map(function (name) {
        const label = make("label", " " + name), box = make("input", null, { type: "checkbox", value: name });
        label.prepend(box);
        return label;
      }));
    });
  }
  function showOffered() { // files of the folder, and results that are not listed yet
    const found = state.offered, text = JSON.stringify(found);
    if (text === shownOffers) { return; }
    shownOffers = text;
    [["robots", found.robots.concat(state.robots)], ["earlier-results", found.results]].forEach(function (one) {
      fill(id(one[0]), one[1].map(function (name) { return make("option", null, { value: name }); }));
    });
    document.querySelectorAll("select[data-adds]").forEach(function (one) {
      one.hidden = !found.logs.length;
      fill(one, [option("", "add a log of this folder", true)].concat(found.logs.map(function (name) { return option(name, name, false); })));
    });
  }
  const places = { check: ["doctor", "Show the findings"], excite: ["motion", "Show the motion"], identify: ["results", "Show the result"], compare: ["results", "Show the comparison"], export: ["export", "Show the files"] };
  function showJob() {
    const job = state.job, box = id("job");
    if (job && job.running) { dismissed = false; }
    box.hidden = !job || dismissed;
    if (!job) { return; }
    box.querySelector("strong").textContent = job.task;
    const bar = box.querySelector("progress");
    bar.hidden = !job.running;
    if (job.share > 0 && job.share < 1) { bar.value = job.share; } else { bar.removeAttribute("value"); } // something without a known end
    id("cancel").hidden = !job.running;
    id("dismiss").hidden = job.running;
    const leads = job.error ? /columns: ?{/.test(job.error) && ["columns", "Change the columns"] : places[job.task];
    id("outcome").hidden = job.running || !leads;
    if (leads) { id("outcome").href = "#" + leads[0]; id("outcome").textContent = leads[1]; }
    words(box.querySelector("span"), job.running ? job.stage + ", " + job.seconds + " s" : job.error || "done");
    ["check", "run", "pair", "export", "design"].forEach(function (name) {
      (name === "check" ? [id(name)] : id(name).querySelectorAll("button")).forEach(function (one) { one.disabled = job.running; });
    });
  }
  function showLoaded(changed) {
    const loaded = state.loaded;
    if (loaded && !(state.job && state.job.running)) { suggest("name", loaded.free); suggest("design-name", loaded.motion); }
    if (!loaded || !changed) { return; }
    if (drawn !== state.read) { // what is typed since then stays
      id("robot-name").value = loaded.robot;
      id("logs").value = loaded.given.join("\n");
      id("unseen").value = loaded.validate.join("\n");
      showUnread();
    }
    ["model", "estimator", "auto", "hold_out", "purpose"].forEach(function (key) { id(key).value = loaded.settings[key] === null ? "" : loaded.settings[key]; });
    const said = [make("p", loaded.bodies + " bodies, joints: " + loaded.joints.join(", "))];
    loaded.logs.forEach(function (log) { said.push(make("p", log.name + ": " + log.samples + " samples, " + number(log.seconds) + " s, " + number(log.rate) + " Hz")); });
    if (loaded.refusal) { const box = make("div", null, { "class": "warning stop" }); box.append(words(make("p", null, { "class": "text" }), loaded.refusal)); if (loaded.columns.names.length) { box.append(columnHint()); } said.push(box); }
    fill(id("loaded"), said);
    document.querySelectorAll("#design .driven").forEach(function (one) { one.hidden = loaded.swings; });
    document.querySelectorAll("#design .swinging").forEach(function (one) { one.hidden = !loaded.swings; });
    fill(id("rows"), loaded.columns.rows.map(function (row) { return columnRow(row, loaded.columns.names); }));
    fill(id("chips"), loaded.columns.names.map(chip));
    if (drawn !== state.read) { drawn = state.read; id("drawing").hidden = false; frame("view", base + "view?" + drawn, reading + "view/" + drawn + "/viser.html"); }
  }
  function columnHint() { // messages name options of commands and keys of files
    const hint = make("p", "Here: choose column, unit and scale of each signal in the table ");
    hint.append(make("a", "Columns", { href: "#columns" }), ". A scale of -1 changes a sign.");
    return hint;
  }
  function showUnread() { // what is typed is used only after Load
    const loaded = state && state.loaded;
    id("unread").hidden = !loaded || id("robot-name").value.trim() === loaded.robot && lines("logs").join() === loaded.given.join() && lines("unseen").join() === loaded.validate.join();
  }
  // What an opened file asks for besides an identification: the forms show it, and what they have no box for as text.
  function showAsked(opened) { // if not opened just now, what was typed since then stays
    const motion = state.asked.excite || {}, compared = state.asked.compare, exported = state.asked.export;
    kept = motion.after || [];
    if (opened) { fillForms(motion, compared, exported); }
    const others = Object.keys(motion).filter(function (key) { return !boxes.includes(key); });
    id("design-more").textContent = others.length ? "Also, from the file: " + others.map(function (key) { const value = motion[key]; return key + " " + (typeof value === "string" ? value : JSON.stringify(value)); }).join(", ") : "";
    const follow = [];
    if (state.loaded && compared) { follow.push(compared.results ? "compare with " + compared.results.map(short).join(", ") : "compare fits"); }
    if (state.loaded && exported) { follow.push("export to " + exported.to.join(", ")); }
    id("follow").parentNode.hidden = !follow.length;
    id("follow").nextElementSibling.textContent = "then " + follow.join(", and ") + ", as the file asks";
  }
  function fillForms(motion, compared, exported) {
    ["period", "floor", "clearance", "starts", "controller_rate"].forEach(function (key) { id("design-" + key).value = motion[key] === undefined ? "" : motion[key]; });
    id("design-home").value = (motion.home || []).join(", ");
    id("design-search").value = motion.search && motion.search.count || "";
    tick("controllers", motion.controllers || []);
    showAfter(kept.length ? "file" : "");
    if (exported) { tick("formats", exported.to); choose("which", exported.result); }
    if (compared && compared.results) { choose("first", compared.results[0]); choose("second", compared.results[1]); }
  }
  function tick(name, values) { id(name).querySelectorAll("input").forEach(function (one) { one.checked = values.includes(one.value); }); }
  function choose(name, path) {
    const at = state.results.list.findIndex(function (one) { return one.path === path; });
    if (at >= 0) { id(name).value = String(at); }
  }
  function showAfter(chosen) {
    const found = state.results.list.map(function (one) { return option(one.path, "result " + one.name, one.path === chosen); });
    if (kept.length) { found.unshift(option("file", kept.map(short).join(", "), chosen === "file")); }
    fill(id("design-after"), [option("", "nothing", chosen === "")].concat(found));
  }
  function suggest(name, value) {
    if (!id(name).value || id(name).value === suggested[name]) { id(name).value = suggested[name] = value; }
  }
  function ticked(name) { return Array.from(id(name).querySelectorAll("input:checked")).map(function (one) { return one.value; }); }
  function columnRow(row, names) {
    const line = make("tr"), column = make("select", null, { "aria-label": "column of " + row.key, "data-key": row.key });
    const unit = make("select", null, { "aria-label": "unit of " + row.key });
    const scale = make("input", null, { size: "7", "aria-label": "scale of " + row.key, value: row.scale });
    const offset = make("input", null, { size: "7", "aria-label": "offset of " + row.key, value: row.offset });
    const delay = make("input", null, { size: "7", "aria-label": "delay of " + row.key + " in seconds", value: row.delay });
    fill(column, [option("", row.column ? "(let dynid choose)" : "(none)", !row.column)].concat(names.map(function (name) { return option(name, name, name === row.column); })));
    fill(unit, [option("", row.key === "t" ? "inferred" : "SI", !row.unit)].concat(row.units.map(function (name) { return option(name, name, name === row.unit); })));
    function map(name, more) { ask("map", Object.assign({ key: row.key, column: name, scale: given(scale.value, 1), offset: given(offset.value, 0), delay: given(delay.value, 0) }, more)); }
    column.addEventListener("change", function () { map(column.value, {}); }); // with the unit in its name
    [unit, scale, offset, delay].forEach(function (one) {
      one.addEventListener("change", function () { if (column.value) { map(column.value, { unit: unit.value }); } });
    });
    line.addEventListener("dragover", function (e) { if (held !== null) { e.preventDefault(); line.classList.add("over"); } });
    line.addEventListener("dragleave", function (e) { if (!line.contains(e.relatedTarget)) { line.classList.remove("over"); } });
    line.addEventListener("drop", function (e) { e.preventDefault(); line.classList.remove("over"); if (held !== null) { map(held, {}); } });
    const name = make("th", row.key + " ", { scope: "row" });
    name.append(make("span", row.label.replace(/^the /, "").replace(/'/g, ""), { "class": "muted" }));
    line.append(name);
    [column, unit, scale, offset, delay].forEach(function (one) { const cell = make("td"); cell.append(one); line.append(cell); });
    line.append(make("td", row.why));
    return line;
  }
  function chip(name) {
    const used = state.loaded.columns.rows.filter(function (row) { return row.column === name; })[0];
    const one = make("span", name, { "class": used ? "chip used" : "chip", draggable: "true", role: "listitem", "data-name": name });
    if (used && used.key !== name) { one.append(make("span", " \u2192 " + used.key, { "class": "muted" })); }
    one.addEventListener("dragstart", function (e) { held = name; e.dataTransfer.setData("text/plain", name); });
    one.addEventListener("dragend", function () { held = null; });
    return one;
  }
  function showCheck() {
    const found = state.check;
    if (!found) { fill(id("findings"), []); return; }
    const head = make("p"), worst = found.refused || found.findings.some(function (one) { return one.severity === "stop"; }) ? "bad" : found.findings.some(function (one) { return one.severity === "care"; }) ? "care" : "good";
    head.append(light(worst), words(make("strong"), found.headline));
    fill(id("findings"), [head].concat(found.findings.map(function (one) {
      const box = make("div", null, { "class": "warning " + one.severity }), title = make("p");
      title.append(light(one.severity), make("span", one.code, { "class": "code" }), document.createTextNode(" (" + (one.refused ? "refused" : one.severity) + ") " + (one.place ? one.place + ": " : "")), words(make("span"), one.text));
      box.append(title);
      if (one.remedy) { box.append(words(make("p", null, { "class": "remedy" }), one.remedy)); }
      if (/columns: ?{/.test(one.remedy)) { box.append(columnHint()); }
      return box;
    })));
  }
  function showMotions() {
    const all = state.results.motions, text = JSON.stringify(all);
    if (text === shownMotions) { return; }
    const changed = shownMotions !== "";
    shownMotions = text;
    fill(id("motions"), all.map(function (one, k) {
      const box = make("div", null, { "class": "verdict " + one.level }), line = make("div", null, { "class": "row" }), button = make("button", "Watch in 3-D", { type: "button" });
      box.append(make("strong", one.name + ": " + one.headline));
      button.addEventListener("click", function () { watch(k); id("planned").scrollIntoView(); });
      const report = make("button", "Show the report", { type: "button" });
      report.addEventListener("click", function () { frame("planned", reading + "motion/" + k + "/report.html"); id("planned").scrollIntoView(); });
      line.append(button, report, newTab("motion/" + k + "/report.html"), make("span", one.files.join(", "), { "class": "muted" }));
      box.append(line);
      return box;
    }));
    if (all.length && changed) { watch(all.length - 1); } // a new one, not those of a page that was loaded again
  }
  function watch(k) { frame("planned", reading + "motion/" + k + "/report.html?at=robot", reading + "motion/" + k + "/viser.html"); }
  function newTab(place) { return make("a", "in a new tab", { href: reading + place, target: "_blank", rel: "noopener noreferrer" }); }
  function showResults() {
    const text = JSON.stringify([state.results, state.exported]);
    if (text === shownResults) { return; }
    shownResults = text;
    const all = state.results.list;
    fill(id("list"), all.map(resultBox));
    state.results.compared.forEach(function (one, k) {
      const box = make("div", null, { "class": "compared" }), line = make("div", null, { "class": "row" }), button = make("button", "Show the comparison", { type: "button" }), place = "compared/" + k + "/comparison.html";
      box.append(make("strong", one.name));
      one.words.filter(Boolean).forEach(function (text) { box.append(words(make("p"), text)); });
      button.addEventListener("click", function () { open(place); });
      line.append(button, newTab(place), make("span", short(one.folder), { "class": "muted" }));
      box.append(line);
      id("list").append(box);
    });
    id("pair").hidden = all.length < 2;
    id("export").hidden = !all.length;
    showAfter(id("design-after").value);
    const more = all.length > listed; // a new result is what is exported and compared next
    listed = all.length;
    ["first", "second", "which"].forEach(function (name) {
      const before = more ? "" : id(name).value, usual = name === "first" ? Math.max(0, all.length - 2) : all.length - 1;
      fill(id(name), all.map(function (one, k) { return option(k, one.name, before === "" ? k === usual : String(k) === before); }));
    });
    const made = state.exported;
    fill(id("exported"), !made ? [] : made.notes.map(function (note) { return words(make("p"), note); }).concat(made.files.map(function (one) {
      const line = make("p");
      line.append(light(one.failure ? "bad" : "good"), make("strong", one.format), document.createTextNode(": " + one.files.map(short).join(", ") + ". " + one.certificate));
      return line;
    })));
  }
  function resultBox(one, k) {
    const box = make("div", null, { "class": "verdict " + one.level }), button = make("button", "Show the report", { type: "button" });
    box.append(make("strong", one.name + ": " + one.headline));
    if (one.refusal) { box.append(words(make("p", null, { "class": "text" }), one.refusal)); }
    const line = make("div", null, { "class": "row" });
    button.addEventListener("click", function () { open("result/" + k + "/report.html"); });
    if (one.report) {
      const robot = make("button", "Watch in 3-D", { type: "button" });
      robot.addEventListener("click", function () { open("result/" + k + "/report.html?at=robot", "result/" + k + "/viser.html"); });
      line.append(button, robot, newTab("result/" + k + "/report.html"));
    }
    line.append(make("span", short(one.path), { "class": "muted" }));
    const fold = make("details"), table = make("table"), head = make("tr"), holder = make("div", null, { "class": "scroll" });
    ["parameter", "value", "sigma", "sigma in %", "unit"].forEach(function (name, at) { head.append(make("th", name, { scope: "col", "class": at % 4 ? "n" : "" })); });
    table.append(head);
    one.parameters.forEach(function (p) {
      const row = make("tr");
      row.append(make("th", p.name, { scope: "row" }));
      [number(p.value), number(p.sigma), number(p.percent), p.unit].forEach(function (cell, at) { row.append(make("td", cell, { "class": at < 3 ? "n" : "unit" })); });
      table.append(row);
    });
    holder.append(table);
    fold.append(make("summary", one.parameters.length + " parameters"), holder);
    box.append(line, fold);
    return box;
  }
  function open(place, solid) { frame("shown", reading + place, solid && reading + solid); id("shown").scrollIntoView(); }

  id("files").addEventListener("submit", function (e) { e.preventDefault(); id("name").value = id("design-name").value = ""; ask("load", { robot: id("robot-name").value, logs: lines("logs"), validate: lines("unseen") }); });
  id("files").addEventListener("input", showUnread);
  new ResizeObserver(function () { // the end of the page is not behind it
    const high = id("status").getBoundingClientRect().height;
    document.body.style.paddingBottom = document.documentElement.style.scrollPaddingBottom = high + 30 + "px";
  }).observe(id("status"));
  id("theme").addEventListener("click", function () { window.setTimeout(again, 0); });
  id("check").addEventListener("click", function () { ask("check", {}); });
  id("cancel").addEventListener("click", function () { ask("cancel", {}); });
  ["model", "estimator", "auto", "hold_out", "purpose"].forEach(function (key) {
    id(key).addEventListener("change", function () { ask("settings", { [key]: key === "hold_out" ? given(id(key).value, null) : id(key).value || null }); });
  });
  id("design").addEventListener("submit", function (e) {
    e.preventDefault();
    const asked = { name: id("design-name").value }, after = id("design-after").value;
    boxes.filter(function (key) { return !id(key === "controllers" ? key : "design-" + key).closest("[hidden]"); }).forEach(function (key) {
      asked[key] = key === "controllers" ? null : given(id("design-" + key).value, null);
    });
    if ("home" in asked) { asked.home = id("design-home").value.split(/[,;]/).map(function (one) { return one.trim(); }).filter(Boolean); }
    if ("controllers" in asked) { asked.controllers = ticked("controllers"); }
    asked.after = after === "" ? null : after === "file" ? kept : [after];
    ask("excite", asked);
  });
  id("run").addEventListener("submit", function (e) { e.preventDefault(); ask("identify", { name: id("name").value, follow: id("follow").checked }); });
  id("open").addEventListener("submit", function (e) { e.preventDefault(); ask("open", { path: id("earlier").value }); });
  id("pair").addEventListener("submit", function (e) { e.preventDefault(); ask("compare", { a: Number(id("first").value), b: Number(id("second").value) }); });
  id("export").addEventListener("submit", function (e) {
    e.preventDefault();
    ask("export", { result: Number(id("which").value), formats: ticked("formats") });
  });
  document.querySelectorAll("select[data-adds]").forEach(function (one) {
    one.addEventListener("change", function () {
      const box = id(one.dataset.adds), given = lines(box.id);
      if (one.value && !given.includes(one.value)) { box.value = given.concat(one.value).join("\n"); }
      one.value = "";
      showUnread();
    });
  });
  id("dismiss").addEventListener("click", function () { dismissed = true; id("job").hidden = true; });
  id("view").addEventListener("load", function () { // as high as its page, also if the width changes
    const body = id("view").contentDocument && id("view").contentDocument.body;
    id("drawing").hidden = true;
    if (!body) { return; } // of Viser: as high as the style says
    new ResizeObserver(function () { id("view").style.height = Math.ceil(body.getBoundingClientRect().height) + 4 + "px"; }).observe(body);
  });
  window.addEventListener("focus", function () { ask("state"); }); // another tab may have changed it
  ask("state");
})();
