// The page with a real server's scenario, as README.md and docs/page.md show it.
//
//     viscera serve cautery --port 8000 &
//     node docs/images/page-scenarios.mjs cautery http://127.0.0.1:8000/ docs/images
//
// A drill is started. With palpation it presses the probe into the tissue, with cautery it draws along the violet line, with bleeding it
// clips the vein, rinses and sucks, with river it holds the ball into the stream, with smoke it burns, with hysteroscopy it sucks, and with
// barium (`viscera run barium --seed 3 --set flow=25 --set tilt=-25 --set beam=1`) it waits. For the picture the world is paused.

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

/** Where a place of the world [mm] is in the page. */
async function seen(page, [x, y, z]) {
  const at = await page.evaluate(([a, b, c]) => window.viscera.project(a, b, c), [x / 1000, y / 1000, z / 1000]);
  return [at.x, at.y];
}

async function draw(page, places, speed) {
  for (let i = 1; i < places.length; i++) {
    const [from, to] = [places[i - 1], places[i]];
    const pieces = Math.ceil(Math.hypot(...from.map((one, axis) => to[axis] - one)) / 0.8);
    for (let k = 1; k <= pieces; k++) {
      await page.mouse.move(...(await seen(page, from.map((one, axis) => one + ((to[axis] - one) * k) / pieces))));
      await simulated(page, 0.8 / speed);
    }
  }
}

async function hold(page, place, seconds) {
  await page.mouse.move(...(await seen(page, place)));
  await settled(page);
  await page.mouse.down();
  await simulated(page, seconds);
}

const SCENES = {
  palpation: async (page) => {
    await page.mouse.move(600, 330);
    await settled(page);
    await page.mouse.down();
    await page.mouse.wheel(0, -400);
    await simulated(page, 3);
  },
  barium: (page) => simulated(page, 14),
  cautery: async (page) => {
    const line = [[-31.9, -2.1, 27.1], [-27.6, -6.7, 27.3], [-23.2, -12, 27.5], [-18.8, -14.9, 27.4], [-14.4, -13.6, 27.1], [-10.1, -8.9, 25.6], [-5.7, -3.6, 25], [-1.3, -0.9, 25.5], [3.1, -2.4, 26.1], [7.4, -7.3, 26.7]]; // seed 0 [mm]
    await page.mouse.move(...(await seen(page, line[0])));
    await settled(page);
    await page.mouse.down();
    await draw(page, line, 7); // mm per simulated second
  },
  bleeding: async (page) => {
    const artery = [6.6, -7.5, 26.6], vein = [-19.9, -16.3, 27.3]; // seed 0 [mm]
    await simulated(page, 9);
    await page.keyboard.press("4");
    await hold(page, vein, 0.3);
    await page.mouse.up();
    await page.keyboard.press("2");
    await hold(page, [-8, -14, 27], 0.5);
    await page.mouse.up();
    await simulated(page, 2);
    await page.keyboard.press("1");
    await hold(page, [artery[0] - 14, artery[1] - 6, artery[2]], 0.5);
  },
  hysteroscopy: async (page) => {
    await simulated(page, 3);
    await page.keyboard.press("3");
    await hold(page, [2, 4, 17], 0.6);
  },
  smoke: async (page) => {
    const places = [[-6, -6, 27], [2, -8, 27], [8, -2, 27], [2, 6, 27], [-6, 2, 27]]; // [mm]
    await page.mouse.move(...(await seen(page, places[0])));
    await settled(page);
    await page.mouse.down();
    await draw(page, places, 6);
  },
  river: async (page) => {
    await simulated(page, 7);
    await page.mouse.move(700, 340);
    await settled(page);
    await simulated(page, 1);
  },
};

const { context, close } = await openBrowser();
const { page } = await openPage(context, `${address}?detail=full`);
if (await page.evaluate(() => window.viscera.drill() !== null)) {
  await page.locator("#drill").getByRole("button", { name: "Start", exact: true }).click();
  await until(page, (v) => v.drill()?.phase === "running", null, "the drill runs");
}
await SCENES[scenario](page);
await page.keyboard.press("p");
await until(page, () => document.body.dataset.session === "paused", null, "the world pauses");
await later(2000);
await page.screenshot({ path: join(folder, `page-${scenario}.png`), timeout: 120_000 });
await close();
