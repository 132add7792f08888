// An episode of a saved policy, watched in the page: it is in the list of recordings, plays, and its probe moves.
//
//     node tests/browser/policy.mjs ADDRESS FOLDER
//
// A picture goes into FOLDER, figures to stdout; `tests/browser/test_policy_page.py` judges both.

import { join } from "node:path";
import { later, openBrowser, openPage, started, until } from "./browser.mjs";

const [address, folder] = process.argv.slice(2);

await started(address);
const browser = await openBrowser();
const found = {};
try {
  const { page, errors } = await openPage(browser.context, `${address}?detail=plain`);
  await page.locator('button[aria-label="Recordings"]').click();
  const card = page.locator(".recording-list .scenario-card", { hasNotText: "not ended" }).first(); // the other is the session that runs now
  found.listed = await card.innerText();
  await card.click();
  for (let wait = 0; wait < 90 && !(await page.locator("#watch").isVisible()); wait++) await later(1000);
  await until(page, (v) => v.frame.time > 0.05, null, "it plays");
  const length = Number(await page.locator("#watch input").getAttribute("max"));
  await page.getByRole("button", { name: "Pause" }).click();
  found.length = length;
  found.tips = [];
  for (const time of [0.064, 0.16, 0.9 * length]) {
    await page.locator("#watch input").fill(time.toFixed(2));
    await until(page, (v, at) => Math.abs(v.frame.time - at) < 0.03, time, "it jumps");
    await later(500);
    found.tips.push(await page.evaluate(() => [...window.viscera.tools()[0].position]));
    found.active = await page.evaluate(() => window.viscera.tools()[0].active);
  }
  await page.screenshot({ path: join(folder, "policy.png"), timeout: 60_000 });
  found.errors = errors;
} catch (error) {
  found.error = String(error?.stack ?? error);
} finally {
  await browser.close();
}
console.log(JSON.stringify(found));
