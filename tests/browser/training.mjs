// A trainee and a trainer, each in a browser of their own, with nothing but the page: a name and its code, a trial and its
// result, another's name refused, taking over, trainees, reports, exports, a recording watched, two side by side.
//
//     node tests/browser/training.mjs ADDRESS FOLDER PLACE TOKEN
//
// PLACE is JSON: over the middle of what is hidden, [x, y, z] in metres. Pictures and downloads go into FOLDER, figures
// to stdout; `tests/browser/test_training_page.py` judges both.

import { join } from "node:path";
import { later, openBrowser, openPage, started, until } from "./browser.mjs";

const [address, folder, text, token] = process.argv.slice(2);
const place = JSON.parse(text);
const PIN = 1;
const shoot = (page, name, whole = false) => page.screenshot({ path: join(folder, `${name}.png`), timeout: 60_000, fullPage: whole });
const inDrill = (page, name) => page.locator("#drill").getByRole("button", { name, exact: true });

async function enter(page, fields) {
  for (const [name, value] of Object.entries(fields)) await page.locator(`.who input[name=${name}]`).fill(value);
  await page.locator(`.who form:has(input[name=${Object.keys(fields)[0]}]) button`).click();
}

/** Says who they are, finds what is hidden, and sees where they stand. */
async function train(page) {
  await inDrill(page, "Who are you?").click();
  await enter(page, { trainee: "Ada" });
  await page.locator(".who-said code").waitFor();
  const code = await page.locator(".who-said code").textContent();
  await shoot(page, "code");
  await page.locator(".who .round").click();
  await inDrill(page, "Start").click();
  await until(page, (v) => v.drill()?.phase === "running", null, "the drill runs");
  const at = await page.evaluate(([x, y, z]) => window.viscera.project(x, y, z), place);
  await page.keyboard.press(String(PIN + 1));
  await page.mouse.move(at.x, at.y);
  await until(page, (v, number) => v.tools()[number].active, PIN, "the pin comes in");
  await later(300);
  await page.mouse.down();
  await until(page, (v) => v.measures().pins >= 1, null, "the pin sticks");
  await page.mouse.up();
  await page.locator("#drill summary.go").click();
  await page.getByRole("button", { name: "sure", exact: true }).click();
  await until(page, (v) => v.drill()?.phase === "ended", null, "the drill ends");
  await page.mouse.move(640, 690);
  await page.locator(".standing").waitFor();
  await later(500);
  await shoot(page, "result");
  return { code, bar: await page.locator("#drill .trainee").count(), standing: await page.locator(".standing").innerText(), result: await page.locator(".drill-result").textContent() };
}

/** Another browser: not Ada, but the trainer, who takes over. */
async function takeOver(page) {
  await page.locator('button[aria-label="Who are you?"]').click();
  await enter(page, { trainee: "Ada" });
  await page.locator(".who-said:not(:empty)").waitFor();
  const refused = await page.locator(".who-said").innerText();
  await shoot(page, "refused");
  await enter(page, { trainer: token });
  await page.locator(".who[open]").waitFor({ state: "detached" }).catch(() => undefined);
  await page.getByRole("button", { name: "Take over" }).click();
  await until(page, () => !document.getElementById("banners").innerText.includes("You are watching"), null, "the trainer has them");
  return { refused, address: page.url() };
}

async function download(page, name) {
  const [file] = await Promise.all([page.waitForEvent("download"), page.locator("section:has(h2:text-is('Everybody')) > .downloads").getByText(name, { exact: true }).click()]);
  await file.saveAs(join(folder, file.suggestedFilename()));
  return file.suggestedFilename();
}

/** Trainees, exports and reports, by links and buttons alone. */
async function administer(context) {
  const page = await context.newPage();
  await page.goto(new URL("/training/", address).href);
  await page.locator('form[action="./add"] input[name=trainee]').fill("Grace");
  await page.getByRole("button", { name: "Add" }).click();
  const said = await page.locator(".said").innerText();
  await shoot(page, "trainees");
  const files = [];
  for (const name of ["PDF", "CSV", "Parquet", "xAPI"]) files.push(await download(page, name));
  const row = page.locator("tr", { has: page.getByText("Grace", { exact: true }) });
  await row.locator("summary", { hasText: "New code" }).click();
  await row.getByRole("button", { name: "New code for Grace" }).click();
  const renewed = await page.locator(".said").innerText();
  await row.locator("summary", { hasText: "Delete" }).click();
  await row.getByRole("button", { name: "Delete all of Grace" }).click();
  const gone = await page.locator(".said").innerText();
  await page.locator("section .downloads").first().getByText("Report", { exact: true }).click();
  await page.locator("h1").waitFor();
  await shoot(page, "cohort", true);
  await page.getByRole("link", { name: "Mary", exact: true }).first().click();
  await page.locator(".measures").first().waitFor();
  await shoot(page, "report", true);
  const measures = await page.locator(".measures").first().innerText();
  await page.close();
  return { said, renewed, files, gone, measures };
}

/** The trainee's run in the list, watched, and beside another. */
async function watch(page) {
  await page.locator('button[aria-label="Recordings"]').click();
  const card = page.locator(".recording-list .scenario-card", { hasText: "Ada" }).first();
  const listed = await card.innerText();
  await shoot(page, "recordings");
  await card.click();
  for (let wait = 0; wait < 90 && !(await page.locator("#watch").isVisible()); wait++) await later(1000);
  await until(page, (v) => v.frame.time > 0.5, null, "it plays");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.locator("#watch input").fill("2.0");
  await until(page, (v) => Math.abs(v.frame.time - 2) < 0.02, null, "it jumps");
  await later(500);
  await shoot(page, "replay");
  await page.getByRole("button", { name: "Beside…" }).click();
  await page.locator(".recording-list .scenario-card").last().click();
  for (let wait = 0; wait < 120; wait++) {
    const both = await page.evaluate(() => [...document.querySelectorAll("iframe")].map((one) => one.contentWindow?.viscera?.frame?.time ?? 0)).catch(() => []);
    if (both.length === 2 && both.every((time) => time > 1)) break;
    await later(1000);
  }
  await page.locator(".compare-bar input").fill("1.5");
  await later(4000);
  await shoot(page, "beside");
  const banners = await page.evaluate(() => [...document.querySelectorAll("iframe")].map((one) => one.contentDocument.getElementById("banners").innerText));
  return { listed, banners, sides: await page.evaluate(() => [...document.querySelectorAll("iframe")].map((one) => one.contentWindow.viscera.frame.time)) };
}

await started(address);
const found = {};
const [trainee, trainer] = [await openBrowser(), await openBrowser()];
try {
  const ada = await openPage(trainee.context, `${address}?detail=plain`);
  found.trained = await train(ada.page);
  const other = await openPage(trainer.context, `${address}?detail=plain`);
  found.taken = await takeOver(other.page);
  found.administered = await administer(trainer.context);
  await ada.page.close();
  found.watched = await watch(other.page);
  found.errors = [...ada.errors, ...other.errors].filter((text) => !text.includes("403"));
} catch (error) {
  found.error = String(error?.stack ?? error);
}
console.log(JSON.stringify(found));
await trainee.close();
await trainer.close();
