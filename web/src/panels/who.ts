// Who looks at this page: a trainee by name and code, a trainer by the token. Both go to the server in the body of a
// request; a cookie says it from then on, and a ticket tells the open line. Nothing secret is ever in an address.

import type { Welcome } from "../protocol";
import { h, icon, setText } from "./dom";

export interface Who {
  trainee: string;
  trainer: boolean;
  /** Whether they may see everybody's trials. */
  cohort: boolean;
}

interface Answer extends Who {
  /** That was made just now; shown once. */
  code: string;
  ticket: string;
  error?: string;
}

export interface WhoEvents {
  /** The open line is told by this ticket; an empty one: nobody. */
  enter(ticket: string): void;
  changed(who: Who): void;
}

const KEPT = "viscera.who";
export const NOBODY: Who = { trainee: "", trainer: false, cohort: false };

/** What this browser remembers of the trainee who used it last. */
export function remembered(storage: Pick<Storage, "getItem">): { trainee: string; code: string } {
  try {
    const found = JSON.parse(storage.getItem(KEPT) ?? "{}") as Partial<{ trainee: string; code: string }>;
    return { trainee: found.trainee ?? "", code: found.code ?? "" };
  } catch {
    return { trainee: "", code: "" };
  }
}

export class WhoPanel {
  private readonly dialog: HTMLDialogElement;
  private readonly said = h("p", { class: "who-said", role: "status" });
  private readonly body = h("div", { class: "who-body" });
  private readonly name = h("input", { name: "trainee", type: "text", autocomplete: "off", maxlength: 120, required: true, placeholder: "Name, or a pseudonym" });
  private readonly code = h("input", { name: "code", type: "password", autocomplete: "off", maxlength: 200, placeholder: "Empty the first time" });
  private readonly token = h("input", { name: "trainer", type: "password", autocomplete: "off", required: true, placeholder: "Trainer's token" });
  private who: Who = NOBODY;
  private training = false;
  private trainers = false;
  private tried = false;

  constructor(private readonly events: WhoEvents) {
    const close = h("button", { type: "button", class: "round", "aria-label": "Close", on: { click: () => this.dialog.close() } }, icon("close"));
    this.dialog = h("dialog", { class: "who", "aria-labelledby": "who-title" },
      h("header", {}, h("h2", { id: "who-title" }, "Who are you?"), close), this.said, this.body);
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    document.body.append(this.dialog);
  }

  /** Whether there is anybody to be here. */
  get asks(): boolean {
    return this.training || this.trainers;
  }

  setWelcome({ trainee, trainer, trainers, cohort, training }: Welcome): void {
    this.training = training;
    this.trainers = trainers;
    this.set({ trainee, trainer, cohort });
    const kept = remembered(localStorage);
    // A server that was started anew has forgotten its cookies; the browser has not forgotten the code.
    if (training && trainee === "" && kept.code !== "" && !this.tried) {
      this.tried = true;
      void this.send({ trainee: kept.trainee, code: kept.code }, true);
    }
  }

  open(): void {
    setText(this.said, "");
    this.name.value = this.name.value || remembered(localStorage).trainee;
    this.render();
    this.dialog.showModal();
  }

  private set(who: Who): void {
    this.who = who;
    this.render();
    this.events.changed(who);
  }

  private render(): void {
    const { trainee, trainer } = this.who;
    const parts: Node[] = [];
    if (trainee !== "" || trainer) {
      const words = [trainee, trainer ? "a trainer" : ""].filter(Boolean).join(", ");
      parts.push(h("p", {}, "You are ", h("strong", {}, words), "."),
        h("footer", {}, h("a", { class: "go", href: "./training/", target: "_blank", rel: "noopener" }, trainer ? "Trainees, reports, exports" : "My trials, report, export"),
          h("button", { type: "button", on: { click: () => void this.leave() } }, trainee === "" ? "Leave" : `I am not ${trainee}`)));
    }
    if (this.training && trainee === "") {
      parts.push(form("As a trainee", "A pseudonym will do. The first time a code is made for you, or you choose one.",
        [["Name", this.name], ["Code", this.code]], () => void this.send({ trainee: this.name.value, code: this.code.value })));
    }
    if (this.trainers && !trainer) {
      parts.push(form("As a trainer", "", [["Token", this.token]], () => void this.send({ trainer: this.token.value })));
    }
    this.body.replaceChildren(...parts);
  }

  private async send(given: { trainee?: string; code?: string; trainer?: string }, quiet = false): Promise<void> {
    const told = await this.ask("enter", given);
    this.code.value = this.token.value = "";
    if (told === null || told.error !== undefined) {
      if (quiet) localStorage.removeItem(KEPT);
      else setText(this.said, told?.error ?? "The server does not answer; try again.");
      return;
    }
    const code = told.code === "" ? given.code ?? "" : told.code;
    if (given.trainee !== undefined && code !== "") localStorage.setItem(KEPT, JSON.stringify({ trainee: told.trainee, code }));
    this.events.enter(told.ticket);
    this.set({ trainee: told.trainee, trainer: told.trainer, cohort: told.cohort });
    if (told.code !== "") {
      this.said.replaceChildren("Your code is ", h("code", {}, told.code), ". You need it on another computer; write it down, it is shown this once.");
    } else {
      setText(this.said, "");
      this.dialog.close();
    }
  }

  private async leave(): Promise<void> {
    localStorage.removeItem(KEPT);
    this.name.value = "";
    await this.ask("leave", {});
    this.events.enter("");
    this.set({ ...NOBODY, cohort: false });
    setText(this.said, "");
  }

  private async ask(what: "enter" | "leave", given: object): Promise<Answer | null> {
    try {
      const answer = await fetch(`./training/${what}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(given) });
      return (await answer.json()) as Answer;
    } catch {
      return null;
    }
  }
}

function form(title: string, note: string, fields: [string, HTMLInputElement][], submit: () => void): HTMLElement {
  return h("form", { on: { submit: (event) => {
    event.preventDefault();
    submit();
  } } }, h("h3", {}, title), ...(note === "" ? [] : [h("p", { class: "note" }, note)]),
  ...fields.map(([label, input]) => h("label", {}, h("span", {}, label), input)), h("button", { type: "submit", class: "go" }, "Enter"));
}
