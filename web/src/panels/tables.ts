// Tables that a user may edit while the world runs. A change sends all rows; what the server refuses is said at the top of the
// page, and the table shows again what is in force.

import type { Column, Table } from "../protocol";
import { card, h } from "./dom";
import { plain } from "./format";

const OWN_VALUE_HOLDS = 600; // [ms] that frames may still carry the rows before ours

export type SendTable = (name: string, rows: number[][]) => void;

/** 65536 · red + 256 · green + blue as the browser writes it. */
export function colourText(value: number): string {
  return `#${Math.round(value).toString(16).padStart(6, "0")}`;
}

export function colourNumber(text: string): number {
  return parseInt(text.slice(1), 16);
}

/** What was typed, brought into the column's range; null when it is no number. */
export function typed(column: Column, text: string): number | null {
  const value = column.kind === "colour" ? colourNumber(text) : text.trim() === "" ? NaN : Number(text);
  return Number.isFinite(value) ? Math.min(column.maximum, Math.max(column.minimum, value)) : null;
}

export class TablesPanel {
  readonly element = h("div", { class: "tables" });
  private tables: EditableTable[] = [];

  constructor(private readonly send: SendTable) {}

  setScene(tables: Table[]): void {
    this.tables = tables.filter((info) => info.source === "user").map((info) => new EditableTable(info, this.send));
    this.element.replaceChildren(...this.tables.map((table) => table.element));
    this.element.hidden = this.tables.length === 0;
  }

  /** The server did not take something: what is in force is shown again, whoever has the focus. */
  refused(now: number): void {
    for (const table of this.tables) table.refused(now);
  }

  setValues(values: Record<string, number[][]>, now: number): void {
    for (const table of this.tables) {
      if (table.info.name in values) table.show(values[table.info.name], now);
    }
  }
}

/** A refusal comes this soon after what it refuses [ms]. */
const REFUSAL_WITHIN = 3000;

class EditableTable {
  readonly element: HTMLDetailsElement;
  private readonly cells: HTMLInputElement[][];
  private rows: number[][];
  private shown = "";
  private changedAt = -Infinity;
  private mistaken = false;

  constructor(readonly info: Table, private readonly send: SendTable) {
    this.rows = info.rows.map((row) => [...row]);
    this.cells = info.rows.map((_, row) => info.columns.map((column, index) => this.cell(column, row, index)));
    const names = info.row_names.length > 0;
    const head = info.columns.map(({ label, unit, help }) =>
      h("th", { scope: "col", title: help }, unit === "" ? label : `${label} [${unit}]`));
    if (names) head.unshift(h("th", {}, ""));
    const body = this.cells.map((row, number) =>
      h("tr", {}, names ? h("th", { scope: "row" }, info.row_names[number]) : null, ...row.map((cell) => h("td", {}, cell))));
    const meanings = info.columns.filter(({ help }) => help !== "");
    const explained = h("dl", { class: "meanings" },
      ...meanings.flatMap(({ label, help }) => [h("dt", {}, label), h("dd", {}, help)]));
    const back = h("button", { type: "button", class: "plain", on: { click: () => this.set(info.rows) } }, "Reset to default");
    this.element = card(info.label, false, null, h("p", { class: "note" }, info.help),
      h("div", { class: "table-scroll" },
        h("table", { class: "editable" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body))), back, meanings.length > 0 ? explained : null);
    this.display();
    // The panel is long; what was just opened should be seen.
    this.element.addEventListener("toggle", () => {
      if (this.element.open) this.element.scrollIntoView({ block: "start" });
    });
  }

  show(rows: number[][], now: number): void {
    const busy = this.element.contains(document.activeElement) && document.activeElement instanceof HTMLInputElement;
    if (!this.mistaken && (busy || now - this.changedAt < OWN_VALUE_HOLDS)) return;
    this.mistaken = false;
    this.rows = rows.map((row) => [...row]);
    this.display();
  }

  refused(now: number): void {
    this.mistaken ||= now - this.changedAt < REFUSAL_WITHIN;
  }

  private cell(column: Column, row: number, index: number): HTMLInputElement {
    const label = `${column.label}, ${this.info.row_names.at(row) ?? `row ${row + 1}`}`;
    const readonly = this.info.fixed.some(([r, c]) => r === row && c === index);
    const change = { change: () => this.edit(row, index) };
    if (column.kind === "colour") {
      return h("input", { type: "color", "aria-label": label, disabled: readonly, on: { ...change, input: () => this.edit(row, index) } });
    }
    const range = `${plain(column.minimum)} to ${plain(column.maximum)} ${column.unit}`.trim();
    return h("input", { type: "number", min: column.minimum, max: column.maximum, step: "any", "aria-label": label, readonly,
      title: readonly ? "Stays as it is" : range, on: change });
  }

  private edit(row: number, index: number): void {
    const value = typed(this.info.columns[index], this.cells[row][index].value);
    const rows = this.rows.map((old) => [...old]);
    if (value !== null) rows[row][index] = value;
    // A value that is none, or beyond the range, is put right in its field at once.
    this.shown = "";
    this.set(rows);
  }

  private set(rows: number[][]): void {
    this.changedAt = performance.now();
    this.rows = rows.map((row) => [...row]);
    this.display();
    this.send(this.info.name, this.rows);
  }

  private display(): void {
    const asked = JSON.stringify(this.rows);
    if (asked === this.shown) return;
    this.shown = asked;
    this.rows.forEach((row, r) => row.forEach((value, c) => {
      const cell = this.cells.at(r)?.at(c);
      if (cell !== undefined) cell.value = this.info.columns[c].kind === "colour" ? colourText(value) : plain(value);
    }));
  }
}
