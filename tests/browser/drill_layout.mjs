// Where the bar of a drill and its result lie, in windows of four sizes: nothing sticks out, nothing lies over another.
//
//     node tests/browser/drill_layout.mjs ADDRESS FOLDER
//
// Pictures go into FOLDER, figures to stdout; `tests/browser/test_drill_layout.py` judges both.

import { join } from "node:path";
import { later, openBrowser, runChecks, started, until } from "./browser.mjs";

const [address, folder] = process.argv.slice(2);
const WINDOWS = { laptop: [1280, 720], small: [1024, 700], tablet: [820, 1180], phone: [390, 844] };

const boxes = (page) => page.evaluate(() => {
  const parts = { header: "#header > *", bar: ".drill-bar", card: ".drill-result", tools: "#tools", transport: "#transport", guide: "#guide summary" };
  const found = [];
  for (const [part, selector] of Object.entries(parts)) {
    for (const element of document.querySelectorAll(selector)) {
      if (element.getClientRects().length === 0 || window.getComputedStyle(element).visibility === "hidden") continue;
      const { left, top, right, bottom } = element.getBoundingClientRect();
      found.push({ part, name: element.className || element.id, left, top, right, bottom });
    }
  }
  // A title that is cut off cannot be read.
  const cut = [...document.querySelectorAll(".drill-result h2, .drill-bar button")].filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent);
  return { found, cut, overflow: document.documentElement.scrollWidth };
});

async function layouts(page) {
  const told = {};
  const look = async (phase) => {
    for (const [name, [width, height]] of Object.entries(WINDOWS)) {
      await page.setViewportSize({ width, height });
      await later(500);
      told[`${phase} ${name}`] = { window: [width, height], ...(await boxes(page)) };
      await page.screenshot({ path: join(folder, `${phase}-${name}.png`), timeout: 60_000 });
    }
    await page.setViewportSize({ width: 1280, height: 720 });
    await later(300);
  };
  await look("waiting");
  await page.locator("#drill").getByRole("button", { name: "Start", exact: true }).click();
  await until(page, (v) => v.drill()?.phase === "running", null, "the drill runs");
  await look("running");
  await page.locator("#drill").getByRole("button", { name: "Give up", exact: true }).click();
  await page.locator(".drill-result .advice").waitFor();
  await look("ended");
  return { told };
}

await started(address);
const { context, close } = await openBrowser();
await runChecks(context, `${address}?detail=plain`, { layouts });
await close();
