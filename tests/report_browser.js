// Opens pages in headless Chromium and prints what it saw as JSON: node report_browser.js PAGE.html ...
"use strict";
const path = require("path");
const { chromium } = require("playwright-core");
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
let axe = null;
try { axe = require("axe-core").source; } catch { /* checked without it */ }

async function look(browser, file) {
  const seen = { file: path.basename(file), errors: [], requests: [], widths: {}, axe: null };
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, bypassCSP: false });
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error") { seen.errors.push(m.text()); } });
  page.on("pageerror", (e) => seen.errors.push(String(e)));
  page.on("request", (r) => { if (!/^(file|data|blob):/.test(r.url())) { seen.requests.push(r.url()); } });
  const start = Date.now();
  await page.goto("file://" + path.resolve(file), { waitUntil: "load" });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0))));
  seen.seconds = (Date.now() - start) / 1000;
  // Verdict, first reason and first step: what a reader in a hurry needs, without scrolling.
  seen.first = await page.evaluate(() => Math.max(0, ...[".verdict", ".reasons > li", ".steps > li"].map((s) => {
    const part = document.querySelector(s);
    return part ? part.getBoundingClientRect().bottom : 0;
  })));
  await page.evaluate(() => { document.querySelectorAll("main details:not(.behind)").forEach((d) => { d.open = true; }); window.dynid.drawAll(); });
  // The numbers of a plot fit beside each other: nobody reads a table of fifty columns.
  seen.numbers = await page.evaluate(() => {
    document.querySelectorAll("details.behind").forEach((d) => { d.open = true; });
    return new Promise((done) => setTimeout(() => {
      const boxes = [...document.querySelectorAll("details.behind .scroll")];
      document.querySelectorAll("details.behind").forEach((d) => { d.open = false; });
      done(boxes.map((b) => b.querySelectorAll("th").length));
    }, 200));
  });
  seen.plots = await page.evaluate(() => [...document.querySelectorAll(".plot")].map((p) => p.querySelectorAll("svg").length));
  seen.robot = await page.evaluate(() => {
    const c = document.getElementById("robot");
    return c ? c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v, i) => i % 4 === 3 && v > 0) : null;
  });
  for (const width of [400, 800, 1400]) {
    await page.setViewportSize({ width, height: 900 });
    await page.waitForTimeout(150);
    seen.widths[width] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight]);
    if (width === 400) {
      seen.stacked = await page.evaluate(() => [...document.querySelectorAll("table.stacked")].every((t) => t.offsetWidth <= t.parentElement.clientWidth));
    }
  }
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.click("#theme");
  seen.theme = light !== await paper();
  await page.click("#theme");
  seen.folds = await page.evaluate(() => {
    const fold = document.querySelector("details.question") || document.querySelector("details");
    if (!fold) { return null; }
    const before = fold.offsetHeight;
    fold.open = false;
    const after = fold.offsetHeight;
    fold.open = true;
    return after < before;
  });
  seen.zoom = await page.evaluate(() => {
    const box = document.querySelector("#efforts-0 .canvas");
    if (!box) { return null; }
    const before = box.innerHTML;
    box.dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
    return before !== box.innerHTML;
  });
  seen.pdf = (await page.pdf({ format: "A4" })).length;
  await context.close();
  if (axe) {
    for (const colorScheme of ["light", "dark"]) {
      const other = await browser.newContext({ viewport: { width: 1200, height: 900 }, bypassCSP: true, colorScheme });
      const tab = await other.newPage();
      await tab.goto("file://" + path.resolve(file));
      await tab.evaluate(() => { document.querySelectorAll("main details.question").forEach((d) => { d.open = true; }); window.dynid.drawAll(); });
      await tab.evaluate(axe);
      const found = await tab.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      const bad = found.violations.filter((v) => ["serious", "critical"].includes(v.impact));
      seen.axe = (seen.axe || []).concat(bad.map((v) => `${colorScheme} ${v.id} (${v.nodes.length}): ${v.nodes[0].html.slice(0, 160)}`));
      await other.close();
    }
  }
  return seen;
}

(async () => {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: flags });
  const found = [];
  for (const file of process.argv.slice(2)) { found.push(await look(browser, file)); }
  await browser.close();
  process.stdout.write(JSON.stringify(found));
})().catch((error) => { process.stderr.write(String(error)); process.exit(1); });
