// Drills, recordings, and who does them: the panels that belong to training, wired to the line.

import type { Connection } from "./connection";
import { part } from "./opening";
import { DrillPanel } from "./panels/drill";
import type { Header } from "./panels/header";
import { RecordingsPanel } from "./panels/recordings";
import { WhoPanel, type Who } from "./panels/who";
import type { Welcome } from "./protocol";

export interface TrainingEvents {
  /** The scenario that is shown. */
  scenario(): string;
  /** Who looks at this page has changed. */
  changed(): void;
}

export class Training {
  readonly drill: DrillPanel;
  readonly recordings: RecordingsPanel;
  readonly who: WhoPanel;
  /** Whether a trainer looks at this page. */
  trainer = false;

  constructor(line: Pick<Connection, "send">, private readonly header: () => Header, private readonly events: TrainingEvents) {
    this.who = new WhoPanel({ enter: (ticket) => line.send({ type: "enter", ticket }), changed: (who) => this.setWho(who) });
    this.drill = new DrillPanel(part("drill"), {
      send: (message) => line.send({ type: "drill", ...message }),
      who: () => this.who.open(),
    });
    this.recordings = new RecordingsPanel(part("watch"), {
      watch: (recording, at) => line.send({ type: "watch", recording, at }),
      seek: (message) => line.send({ type: "seek", ...message }),
      live: () => line.send({ type: "choose", scenario: events.scenario() }),
      speed: (value) => line.send({ type: "control", action: "speed", value }),
      film: (recording) => line.send({ type: "film", recording }),
    });
  }

  setWelcome(welcome: Welcome): void {
    this.drill.setWelcome(welcome.training);
    this.who.setWelcome(welcome);
  }

  private setWho(who: Who): void {
    this.trainer = who.trainer;
    this.header().setWho(who, this.who.asks);
    this.drill.setWho(who.trainee);
    this.recordings.setWho(who);
    this.events.changed();
  }
}
