// Uses the studio in headless Chromium as a person does, and prints what it saw as JSON: node studio_browser.js ADDRESS [PICTURE.png]
"use strict";
const { chromium } = require("playwright-core");
const flags = ["--headless", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
let axe = null;
try { axe = require("axe-core").source; } catch { /* checked without it */ }

// Different colours in the middle of what a frame shows: its surroundings are grey.
async function colours(page, frame) {
  const picture = (await frame.screenshot()).toString("base64");
  return page.evaluate(async (data) => {
    const image = new Image();
    image.src = "data:image/png;base64," + data;
    await image.decode();
    const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
    canvas.width = image.width; canvas.height = image.height;
    pen.drawImage(image, 0, 0);
    const pixels = pen.getImageData(0, image.height / 4, image.width, image.height / 2).data, found = new Set();
    for (let i = 0; i < pixels.length; i += 4) { if (Math.abs(pixels[i] - pixels[i + 2]) > 24) { found.add(pixels[i] + 256 * pixels[i + 1] + 65536 * pixels[i + 2]); } }
    return found.size;
  }, picture);
}

async function main(address, picture) {
  const seen = { errors: [], elsewhere: [] };
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: flags });
  const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
  page.setDefaultTimeout(120000);
  page.on("console", (m) => { if (m.type() === "error") { seen.errors.push(m.text()); } });
  page.on("pageerror", (e) => seen.errors.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(new URL(address).origin + "/") && !/^(data|blob):/.test(r.url())) { seen.elsewhere.push(r.url()); } });
  // The first answers are the last to come: what is asked next must wait for them.
  await page.route(/\/(settings|map)$/, async (route) => { await new Promise((go) => setTimeout(go, 700)); await route.continue(); });
  const ended = (task) => page.waitForFunction((name) => {
    const box = document.getElementById("job");
    return box.querySelector("strong").textContent === name && document.getElementById("cancel").hidden;
  }, task);

  await page.goto(address);
  await page.fill("#robot-name", "arm.yaml");
  await page.click("#files button");
  await page.waitForFunction(() => document.getElementById("design-name").value !== "");
  await page.fill("#design-period", "4");
  await page.fill("#design-starts", "1");
  await page.fill("#design-floor", "-3");
  await page.click("#design button");
  await ended("excite");
  const planned = await (await page.waitForSelector("#planned:not([hidden])")).contentFrame();
  await planned.waitForSelector("#robot");
  seen.motion = await page.textContent("#motions strong");
  seen.planned = await planned.$eval("#robot", (c) => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v, i) => i % 4 === 3 && v > 0));
  seen.distances = await planned.textContent("#robot-read");
  await page.selectOption('select[data-adds="logs"]', "odd.csv"); // offered, and not loaded yet
  seen.unread = [await page.inputValue("#logs"), await page.isVisible("#unread")];
  await page.click("#files button");
  await page.waitForSelector("#loaded .warning");
  seen.refusal = await page.textContent("#loaded .warning");
  await page.dragAndDrop('#chips [data-name="a [Nm]"]', '#rows tr:has(select[data-key="tau_1"])');
  await page.waitForFunction(() => document.querySelector('select[data-key="tau_1"]').value === "a [Nm]");
  await page.selectOption('select[data-key="tau_2"]', "b");
  await page.waitForFunction(() => !document.querySelector("#loaded .warning"));
  seen.columns = await page.$$eval("#rows tr", (rows) => rows.map((row) => [row.querySelector("th").firstChild.textContent.trim(), ...Array.from(row.querySelectorAll("select"), (one) => one.value)]));
  const view = await (await page.waitForSelector("#view")).contentFrame();
  await view.waitForSelector("#robot");
  seen.typed = await page.inputValue("#design-floor"); // although logs were loaded and columns chosen since then
  seen.robot = await view.$eval("#robot", (c) => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v, i) => i % 4 === 3 && v > 0));
  seen.drawnBy = await page.textContent("#view-by");
  if (await page.$("#view-by button")) { // WebGL is in software here: offered, not preset
    await page.click("#view-by button");
    seen.viser = {};
    for (const name of ["view", "planned"]) {
      const frame = await page.$("#" + name);
      await (await frame.contentFrame()).waitForSelector("canvas");
      for (let k = 0; k < 60 && !(seen.viser[name] > 20); k++) { seen.viser[name] = await colours(page, frame); }
    }
    seen.viserBy = await page.textContent("#view-by");
    await page.click("#view-by button");
    await (await (await page.$("#view")).contentFrame()).waitForSelector("#robot");
  }
  await page.selectOption("#auto", "off");
  await page.waitForFunction(() => document.getElementById("auto").value === "off");
  await page.click("#check");
  await ended("check");
  seen.inView = await page.$eval("#job", (box) => { const at = box.getBoundingClientRect(); return at.top >= 0 && at.bottom <= innerHeight; });
  seen.doctor = await page.textContent("#findings strong");
  await page.click("#run button");
  await ended("identify");
  seen.result = await page.textContent("#list .verdict strong");
  seen.outcome = await page.getAttribute("#outcome", "href");
  await page.click("#list button");
  const report = await (await page.waitForSelector("#shown")).contentFrame();
  await report.waitForSelector("h1");
  seen.report = await report.textContent("h1");
  await page.selectOption("#estimator", "ols");
  await page.waitForFunction(() => document.getElementById("estimator").value === "ols" && document.getElementById("name").value === "arm-2");
  await page.click("#run button");
  await page.waitForSelector("#cancel:not([hidden])");
  await page.reload(); // the run goes on, and the page shows it
  await page.waitForFunction(() => document.querySelectorAll("#list .verdict").length === 2);
  seen.pair = [await page.$eval("#first", (s) => s.value), await page.$eval("#second", (s) => s.value)];
  await page.click("#pair button");
  await ended("compare");
  seen.compared = await page.textContent("#list .compared");
  await page.check('#formats input[value="yaml"]');
  await page.click("#export button");
  await ended("export");
  seen.exported = await page.textContent("#exported");
  seen.widths = {};
  for (const width of [400, 800, 1300]) {
    await page.setViewportSize({ width, height: 900 });
    await page.waitForTimeout(150);
    const inside = await page.$eval("#view", (one) => one.contentDocument.documentElement.scrollHeight <= one.clientHeight);
    if (!inside) { seen.errors.push(`the robot is cut at ${width} px`); }
    seen.widths[width] = await page.evaluate(() => document.documentElement.scrollWidth);
  }
  if (axe) {
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"], iframes: false }));
    seen.axe = found.violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 160)}`);
  }
  // Two tabs: what one of them asks is about what it shows.
  const other = await browser.newPage();
  other.setDefaultTimeout(120000);
  await other.addInitScript(() => { // as a browser without WebGL
    const usual = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...more) { return kind === "webgl2" ? null : usual.call(this, kind, ...more); };
  });
  await other.goto(address);
  await other.waitForFunction(() => document.getElementById("estimator").value === "ols");
  await Promise.all([page.waitForResponse(/settings$/), page.selectOption("#estimator", "wls")]);
  await other.evaluate(() => { document.getElementById("estimator").value = "robust"; document.getElementById("estimator").dispatchEvent(new Event("change")); });
  await other.waitForSelector("#trouble:not([hidden])");
  await other.waitForFunction(() => document.getElementById("estimator").value === "wls"); // shown as it is now
  seen.tabs = [await page.inputValue("#estimator"), (await other.textContent("#trouble")).includes("another tab")];
  seen.without = await other.textContent("#view-by");
  await other.close();
  // Files that were written are opened again, with their settings.
  const open = async (name) => { await page.fill("#logs", ""); await page.fill("#unseen", ""); await page.fill("#robot-name", name); await page.click("#files button"); };
  await page.uncheck('#formats input[value="yaml"]');
  await open("arm-2-export.yaml");
  await page.waitForSelector('#formats input[value="yaml"]:checked');
  seen.formats = await page.$$eval("#formats input:checked", (all) => all.map((one) => one.value));
  await open("arm-motion-1.yaml");
  await page.waitForFunction(() => document.getElementById("design-period").value === "4");
  seen.again = await page.evaluate(() => Object.fromEntries(["period", "floor", "starts"].map((key) => [key, document.getElementById("design-" + key).value])));
  seen.commands = (await page.textContent("#lines")).split("\n");
  if (picture) { await page.screenshot({ path: picture, fullPage: true }); }
  await browser.close();
  console.log(JSON.stringify(seen));
}
main(process.argv[2], process.argv[3]).catch((error) => { console.error(error); process.exit(1); });
