// The page with a real server's scenario, as README.md and docs/page.md show it.
//
//     viscera serve cautery --port 8000 &
//     node docs/images/page-scenarios.mjs cautery http://127.0.0.1:8000/ docs/images
//
// With cautery it draws along the violet line, with bleeding it waits for blood and sucks some of it away, with river it
// holds the ball into the stream.

import { join } from "node:path";
import { later, openBrowser, openPage, until } from "../../tests/browser/browser.mjs";

const [scenario, address, folder] = process.argv.slice(2);

async function settled(page) {
  await until(page, (v) => v.tip() !== null && v.tools().some((tool) => tool.active), null, "the tool comes in");
  await later(1500);
}

/** Simulated seconds, however slow the machine is. */
async function simulated(page, seconds) {
  const time = () => page.evaluate(() => window.viscera.frame.time);
  for (const end = (await time()) + seconds; (await time()) < end;) await later(30);
}

async function draw(page, places, speed) {
  for (let i = 1; i < places.length; i++) {
    const [from, to] = [places[i - 1], places[i]];
    const pieces = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / 8);
    for (let k = 1; k <= pieces; k++) {
      await page.mouse.move(from[0] + ((to[0] - from[0]) * k) / pieces, from[1] + ((to[1] - from[1]) * k) / pieces);
      await simulated(page, 8 / speed);
    }
  }
}

const SCENES = {
  cautery: async (page) => {
    const line = [[458, 278], [480, 295], [505, 328], [528, 335], [560, 322], [600, 297], [625, 290], [650, 300], [676, 325]]; // seed 0
    await page.mouse.move(...line[0]);
    await settled(page);
    await page.mouse.down();
    await draw(page, line, 40); // pixels per simulated second
  },
  bleeding: async (page) => {
    await simulated(page, 9);
    await page.mouse.move(750, 285);
    await settled(page);
    await page.mouse.down();
    await simulated(page, 0.4);
  },
  river: async (page) => {
    await simulated(page, 5);
    await page.mouse.move(700, 340);
    await settled(page);
    await simulated(page, 1);
  },
};

const { context, close } = await openBrowser();
const { page } = await openPage(context, `${address}?detail=full`);
await SCENES[scenario](page);
await page.screenshot({ path: join(folder, `page-${scenario}.png`), timeout: 120_000 });
await close();
