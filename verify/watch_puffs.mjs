// Opens an address at full screen, 1280 × 800, and counts the pictures that are drawn while few and while many puffs of smoke live.
//
//     node verify/watch_puffs.mjs ADDRESS FEW MOST SECONDS
//
// Prints one line of JSON for each number: pictures per second, share of pixels that the page draws, densities of the volume.

import { later, openBrowser, openPage, started, until } from "../tests/browser/browser.mjs";
import { setting } from "../tests/browser/hands.mjs";

const [address, few, most, seconds] = process.argv.slice(2);
await started(address);
const { context, close } = await openBrowser({ width: 1280, height: 800 });
const { page } = await openPage(context, address);
const look = () => page.evaluate(() => window.viscera.stats());
const density = () =>
  page.evaluate(() => window.viscera.texels("pad.smoke").reduce((sum, byte, at) => (at % 4 ? sum : sum + byte), 0));
for (const puffs of [few, most]) {
  await setting(page, "puffs", puffs);
  await until(page, (v, value) => Math.abs(v.parameters().puffs - value) < 0.5, Number(puffs), `${puffs} puffs are wanted`);
  await later(4000); // the page finds how many pixels it can draw
  const before = await look(), begin = Date.now();
  await later(1000 * Number(seconds));
  const after = await look();
  const rate = (after.framesDrawn - before.framesDrawn) / (1e-3 * (Date.now() - begin));
  console.log(JSON.stringify({ puffs: Number(puffs), rate, share: after.pixelShare, density: await density() }));
}
await close();
process.exit(0);
