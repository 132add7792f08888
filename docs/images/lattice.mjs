// The lattice of the scenario `artery` as Etheredge's figure 3 has it: cut by a scalpel, coloured by strain.
//
//     viscera run artery --set artery_view=1 --set artery_colour=1 --port 8000 --detail 1 --no-open &
//     node docs/images/lattice.mjs http://127.0.0.1:8000/ docs/images

import { join } from "node:path";
import { later, openBrowser, openPage } from "../../tests/browser/browser.mjs";

const [address, folder] = process.argv.slice(2);
const { context, close } = await openBrowser({ width: 1280, height: 720 });
const { page, errors } = await openPage(context, address);

async function simulated(seconds) {
  const time = () => page.evaluate(() => window.viscera.frame.time);
  for (const end = (await time()) + seconds; (await time()) < end;) await later(30);
}

async function point(x, y, z) {
  const at = await page.evaluate(([a, b, c]) => window.viscera.project(a, b, c), [x, y, z]);
  await page.mouse.move(at.x, at.y);
}

await simulated(0.3);
await point(0.004, -0.008, 0.02);
await simulated(0.3);
await page.mouse.down({ button: "left" });
for (let k = 0; k < 12; k++) await page.mouse.wheel(0, -100);
for (let k = 0; k <= 24; k++) {
  await point(0.004, -0.008 + 0.0008 * k, 0.02);
  await simulated(0.03);
}
await page.mouse.up();
await page.mouse.move(100, 600);
await simulated(0.4);
await page.screenshot({ path: join(folder, "lattice-artery-cut.png") });
console.log(JSON.stringify(await page.evaluate(() => window.viscera.measures())), "errors", errors);
await close();
