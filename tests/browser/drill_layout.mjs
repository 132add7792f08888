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
  // Nor can be pressed what something lies over, seen or not.
  const blocked = [...document.querySelectorAll("#header button, #header summary")].filter((one) => {
    const { left, top, width, height } = one.getBoundingClientRect();
    return width > 0 && one.closest("details:not([open]) > :not(summary)") === null && !one.contains(document.elementFromPoint(left + width / 2, top + height / 2));
  }).map((one) => one.getAttribute("aria-label") ?? one.textContent);
  return { found, cut, blocked, overflow: document.documentElement.scrollWidth };
});

/** The list of scenarios while it is open: whether it is inside the window, and which of the cards that are in sight are covered by something. */
async function menu(page) {
  await page.locator("summary.scenario-button").click();
  await later(200);
  const found = await page.evaluate(() => {
    const list = document.querySelector(".scenario-list").getBoundingClientRect();
    const covered = [...document.querySelectorAll(".scenario-list .scenario-card")].flatMap((card) => {
      const { left, top, width, height } = card.getBoundingClientRect();
      const seen = top + height < Math.min(list.bottom, window.innerHeight);
      const clear = [0.1, 0.5, 0.9].every((share) => card.contains(document.elementFromPoint(left + share * width, top + 0.5 * height)));
      return seen && !clear ? [card.textContent] : [];
    });
    return { left: list.left, right: list.right, covered };
  });
  await page.locator("summary.scenario-button").click();
  return found;
}

/** Where instruments stand when there are as many as in the operation, and the panel beside or below them. */
const crowd = (page) => page.evaluate(() => {
  const group = document.querySelector("#tools .group");
  const added = Array.from({ length: 6 }, () => group.firstElementChild.cloneNode(true));
  group.append(...added);
  document.getElementById("tools").classList.add("many");
  const box = (element) => (({ left, top, right, bottom }) => ({ left, top, right, bottom }))(element.getBoundingClientRect());
  const told = { tools: [...group.children].map(box), side: box(document.getElementById("side")) };
  for (const one of added) one.remove();
  document.getElementById("tools").classList.remove("many");
  return told;
});

async function layouts(page) {
  const told = {};
  const look = async (phase) => {
    for (const [name, [width, height]] of Object.entries(WINDOWS)) {
      await page.setViewportSize({ width, height });
      await later(500);
      told[`${phase} ${name}`] = { window: [width, height], ...(await boxes(page)), menu: await menu(page), ...(phase === "waiting" ? { crowd: await crowd(page) } : {}) };
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
