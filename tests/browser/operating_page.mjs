// The page for the operation: a small picture while the hand works, which leaves the machine to the world, and a large one for a photograph.

import { writeFileSync } from "node:fs";
import { later, openBrowser, openPage } from "./browser.mjs";
import { SteadyHand } from "./steady_hand.mjs";

const WORKS = { width: 900, height: 560, deviceScaleFactor: 0.3, mobile: false };
const SHOWN = { width: 1180, height: 800, deviceScaleFactor: 0.75, mobile: false };
const SETTLES = 300; // [ms] of a page that was given another size

/** A hand with its page. `shoot` pauses the world, so that what the hand does meanwhile never comes to it. */
export async function operatingPage(address, places) {
  const { context, close } = await openBrowser({ ...WORKS, scale: WORKS.deviceScaleFactor });
  const { page, errors } = await openPage(context, `${address}?detail=plain`);
  const line = await context.newCDPSession(page);
  const size = async (metrics) => {
    await line.send("Emulation.setDeviceMetricsOverride", metrics);
    const drawn = await page.evaluate(() => window.viscera.stats().framesDrawn);
    for (let k = 0; k < 100; k++, await later(100)) {
      if ((await page.evaluate(() => window.viscera.stats().framesDrawn)) > drawn + 1) break;
    }
    await later(SETTLES);
  };
  const area = await page.locator("#view").boundingBox();
  const side = await page.locator("#side").boundingBox();
  const bars = await Promise.all(["#drill", "#guide"].map((name) => page.locator(name).boundingBox()));
  const top = Math.max(area.y + 50, ...bars.map((box) => (box && box.y + box.height < 0.4 * area.height ? box.y + box.height + 5 : 0)));
  const picture = [area.x + 5, top, (side?.x ?? area.x + area.width) - 5, area.y + area.height - 80];
  const hand = new SteadyHand(page, { ...places, picture, scale: WORKS.deviceScaleFactor });
  const shoot = async (path) => {
    await page.keyboard.press("p");
    await size(SHOWN);
    const { data } = await line.send("Page.captureScreenshot", { format: "png" });
    writeFileSync(path, Buffer.from(data, "base64"));
    await size(WORKS);
    await page.keyboard.press("p");
  };
  return { page, errors, hand, shoot, close };
}
