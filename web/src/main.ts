// Brings the parts of the page together and turns the loop.

import { Connection, socketAddress, type Line } from "./connection";
import { framed } from "./framing";
import { viewPart, type Handle } from "./handle";
import { GamepadHand } from "./hand/gamepad";
import { Hand } from "./hand/hand";
import { Keyboard } from "./hand/keyboard";
import { listenToPointer } from "./hand/pointer";
import { TouchButtons, touchScreen } from "./hand/touch_buttons";
import { actingPoint } from "./instruments";
import { LatencyMeter } from "./latency";
import { besidePictures, besideCards, freeArea, tellStyle, watchLayout } from "./layout";
import { Banners } from "./panels/banners";
import { ForcePanel } from "./panels/force";
import { Guide } from "./panels/guide";
import { Header } from "./panels/header";
import { h } from "./panels/dom";
import { LookingPanel } from "./panels/looking";
import { HelpDialog } from "./panels/help";
import { MeasuresPanel } from "./panels/measures";
import { MarksLayer } from "./panels/marks";
import { asksForForce, Overlay } from "./panels/overlay";
import { ParametersPanel } from "./panels/parameters";
import { PicturesPanel } from "./panels/pictures";
import { TablesPanel } from "./panels/tables";
import { TimingsPanel } from "./panels/timings";
import { Toolbar } from "./panels/toolbar";
import { Transport } from "./panels/transport";
import type { FrameMessage, SceneDescription, ServerMessage, SessionState, Tiles, Tool } from "./protocol";
import { GazeSender } from "./gaze";
import { Rate } from "./rate";
import { followPage, openView, part, sameScene } from "./opening";
import { Training } from "./training";
import type { View } from "./view";
import { WebcamPanel } from "./webcam/panel";
import { WireError } from "./wire";

class Page {
  private readonly overlay = new Overlay(part("overlay"));
  private readonly marks = new MarksLayer(part("marks"));
  private readonly insets: PicturesPanel;
  private readonly banners: Banners;
  private readonly help = new HelpDialog();
  private readonly header: Header;
  private readonly transport: Transport;
  private readonly guide: Guide;
  private readonly force = new ForcePanel();
  private readonly measures = new MeasuresPanel();
  private readonly training: Training;
  private readonly parameters: ParametersPanel;
  private readonly tables: TablesPanel;
  private readonly toolbar: Toolbar;
  private readonly timings: TimingsPanel;
  private readonly connection: Connection;
  private readonly hand: Hand;
  private readonly keyboard: Keyboard;
  private readonly gamepad: GamepadHand;
  private readonly touchButtons: TouchButtons;
  private readonly eyes: WebcamPanel;
  private readonly latency = new LatencyMeter();
  private readonly pictures = new Rate();
  private readonly handle: Handle;
  private settleReady: (time: number) => void = () => undefined;
  private scene: SceneDescription | null = null;
  private waiting: FrameMessage | null = null; // arrived, not yet drawn
  private lastFrame: FrameMessage | null = null; // drawn
  /** Whether the force is what there is to watch: with three digits, so that what is a little harder is told from the rest. */
  private precise = false;
  /** Whether the instruments are in this page's hand; otherwise it watches. */
  private holds = true;
  private state: SessionState | null = null;
  /** Whether the recording that the address names was asked for. */
  private asked = false;
  private framesReceived = 0;
  private lastTurn = performance.now();

  constructor(private readonly view: View) {
    const roomy = matchMedia("(min-width: 900px) and (min-height: 640px)");
    this.connection = new Connection(
      () => new WebSocket(socketAddress(location)),
      {
        message: (message) => this.receive(message),
        line: (line) => this.setLine(line),
        unreadable: (error) => this.setUnreadable(error),
      },
    );
    this.banners = new Banners(part("banners"), {
      restart: () => this.connection.send({ type: "restart" }),
      retry: () => this.connection.retryNow(),
      hand: (action, client = 0) => this.connection.send({ type: "hand", action, client }),
    });
    this.header = new Header(part("header"), {
      choose: (scenario, detail = "") => this.connection.send({ type: "choose", scenario, seed: this.transport.seedValue(), detail }),
      help: () => this.help.toggle(),
      recordings: () => void this.training.recordings.open(),
      who: () => this.training.who.open(),
    });
    this.training = new Training(this.connection, () => this.header, {
      scenario: () => this.scene?.scene.scenario ?? "",
      changed: () => this.tellHand(),
    });
    this.transport = new Transport(part("transport"), (action, value) =>
      this.connection.send(value === undefined ? { type: "control", action } : { type: "control", action, value }));
    new LookingPanel(part("header"), view.orbit);
    this.guide = new Guide(part("guide"), roomy.matches, () => this.help.toggle());
    this.parameters = new ParametersPanel((name, value) => this.connection.send({ type: "set_parameter", name, value }));
    this.insets = new PicturesPanel(part("pictures"), {
      set: (name, value) => this.connection.send({ type: "set_parameter", name, value }),
      rows: (name, rows) => this.connection.send({ type: "set_table", name, rows }),
    }, () => this.fit());
    this.timings = new TimingsPanel(roomy.matches && window.innerHeight >= 860);
    this.tables = new TablesPanel((name, rows) => this.connection.send({ type: "set_table", name, rows }));
    const pinned = h("div", { class: "pinned" }, this.force.element, this.measures.element);
    part("side").append(pinned, this.parameters.element, this.tables.element, this.timings.element);
    this.hand = new Hand(view, { send: (tool, eventTime) => this.sendTool(tool, eventTime) });
    this.touchButtons = new TouchButtons(this.hand);
    this.toolbar = new Toolbar(part("tools"), {
      choose: (tool) => this.chooseTool(tool),
      heat: (shown) => view.showHeat(shown),
    }, touchScreen() ? this.touchButtons.element : null);
    const reference = { pixelsPerMetre: () => this.pixelsPerMetre(), centre: () => view.project(view.orbit.target) };
    listenToPointer(view.canvas, this.hand, view.orbit);
    this.eyes = new WebcamPanel(view.canvas, new GazeSender(view.camera, () => view.orbit.target, (name, rows) =>
      this.holds && this.connection.send({ type: "set_table", name, rows })));
    this.tables.element.after(this.eyes.element);
    this.gamepad = new GamepadHand(this.hand, view.orbit, reference);
    this.keyboard = new Keyboard(this.hand, view.orbit, reference, {
      pause: () => this.transport.togglePause(),
      step: () => this.transport.step(),
      reset: () => this.transport.reset(),
      help: () => this.help.toggle(),
      heat: () => this.toolbar.toggleHeat(),
      closeAll: () => {
        this.header.closeMenu();
        this.insets.shrink();
      },
    }, (tool) => this.chooseTool(tool), () => {
      this.hand.swap();
      this.toolbar.show(this.hand.tool);
    });
    this.handle = this.makeHandle();
    window.viscera = this.handle;
    roomy.addEventListener("change", () => (this.guide.card.open = roomy.matches));
    watchLayout(this.guide.card, view.canvas, () => this.fit());
    // Nobody holds the instrument of a closed page.
    followPage(this.connection, () => this.hand.withdraw());
  }

  start(): void {
    this.connection.start();
    requestAnimationFrame((now) => this.turn(now));
  }

  private receive(message: ServerMessage): void {
    switch (message.type) {
      case "welcome":
        this.handle.client = message.client;
        this.training.setWelcome(message);
        this.latency.forget();
        this.header.setWelcome(message);
        break;
      case "scene":
        this.setScene(message);
        break;
      case "frame":
        // Only the newest is worth drawing, and only of the session that this scene describes.
        if (message.session === this.scene?.session) this.waiting = message;
        this.framesReceived += 1;
        break;
      case "tiles":
        if (message.session === this.scene?.session) this.readable(() => this.putTiles(message));
        break;
      case "topology":
        if (message.session === this.scene?.session) this.readable(() => this.view.putTopology(message));
        break;
      case "session_state":
        this.setState(message);
        break;
      case "score":
        if (message.session === this.scene?.session) this.training.drill.setScore(message.score);
        break;
      case "standing":
        if (message.session === this.scene?.session) this.training.drill.setStanding(message);
        break;
      case "problem":
        this.banners.setProblem(message);
        this.tables.refused(performance.now());
        break;
      case "pong":
        break;
    }
  }

  private tellHand(): void {
    if (this.state !== null) this.banners.setHand(this.state, this.handle.client, this.training.trainer);
  }

  private setScene(description: SceneDescription): void {
    const { scene } = description;
    const again = this.scene !== null && sameScene(this.scene, description);
    // What the user opened or closed stays when the same scenario starts anew.
    this.precise = asksForForce(scene);
    if (this.scene?.scene.scenario !== scene.scenario) this.force.begin(this.precise);
    this.scene = description;
    this.waiting = null;
    // The same session after a lost line: the view stays where the user turned it.
    if (!again) this.view.setScene({ ...scene, camera: framed(scene) });
    else this.view.clear();
    if (!again) this.insets.setScene(scene.scenario, scene.pictures, scene.parameters);
    else this.insets.clear();
    this.marks.setScene(scene.overlays);
    this.hand.setScene(scene, again);
    this.toolbar.setScene(scene, this.hand.tool, again);
    this.overlay.setScene(scene);
    this.header.setScene(description);
    this.guide.setScene(scene);
    this.parameters.setScene(scene.scenario, scene.parameters);
    this.measures.setScene(scene.measures, scene.levels);
    this.training.drill.setScene(scene, again);
    this.tables.setScene(scene.tables);
    this.eyes.setScene(scene.tables);
    this.transport.setSeed(scene.seed);
    if (!again) this.force.forget();
  }

  private putTiles({ arrays, side }: Tiles): void {
    for (const tiles of arrays) {
      if (this.view.putTiles(tiles, side) || this.insets.put(tiles, side)) continue;
      throw new WireError(`The server sent tiles of ${tiles.name}, which the scene does not have.`);
    }
  }

  private setState(state: SessionState): void {
    this.state = state;
    this.header.setState(state);
    this.transport.setState(state);
    this.banners.setState(state);
    this.training.recordings.setState(state);
    if ((state.state === "running" || state.state === "paused") && !this.asked) {
      this.asked = true;
      this.training.recordings.fromAddress(state);
    }
    this.holds = state.holder === 0 || state.holder === this.handle.client;
    this.tellHand();
    this.eyes.setSource(state.gaze);
    this.overlay.setState(state);
    if (state.state !== "running") this.force.hush();
    document.body.dataset.session = state.state;
  }

  private setLine(line: Line): void {
    this.header.setLine(line);
    this.banners.setLine(line);
    if (line.state === "connecting" && this.scene === null) this.overlay.setConnecting();
    if (line.state === "refused") this.overlay.hideStarting();
    document.body.dataset.line = line.state;
  }

  private chooseTool(tool: number): void {
    this.hand.chooseTool(tool);
    this.toolbar.show(this.hand.tool);
    // Space and the arrows are the hand's again.
    this.view.canvas.focus();
  }

  private sendTool(tool: Tool, eventTime: number | null): boolean {
    if (this.connection.line.state !== "open" || !this.holds) return false;
    const sent = this.connection.send(tool);
    if (sent && eventTime !== null) this.latency.sent(tool.sequence, eventTime);
    return sent;
  }

  private turn(now: number): void {
    requestAnimationFrame((next) => this.turn(next));
    const interval = now - this.lastTurn;
    const seconds = Math.min(interval, 100) / 1000;
    this.lastTurn = now;
    this.keyboard.advance(seconds, now);
    this.gamepad.advance(seconds, now);
    this.touchButtons.advance(seconds, now);
    this.hand.advance(seconds, now);
    this.eyes.sender.turn(now);
    const frame = this.waiting;
    this.waiting = null;
    if (frame !== null) this.readable(() => this.show(frame));
    this.insets.draw();
    const drawn = this.view.draw(interval);
    if (drawn) this.pictures.note(now);
    if (frame !== null) this.afterDrawing(frame);
    if (drawn) this.placeLabels();
    this.force.setHand(this.hand.pressDepth, this.hand.pushed, this.hand.reach);
  }

  private show(frame: FrameMessage): void {
    this.view.applyFrame(frame);
    this.marks.update(frame.values);
  }

  private readable(read: () => void): void {
    try {
      read();
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.setUnreadable(error);
    }
  }

  private setUnreadable(error: WireError): void {
    this.banners.setDrawing("The page cannot read what the server sends.", error.message);
  }

  private afterDrawing(message: FrameMessage): void {
    const now = performance.now();
    const { number, session, state } = message;
    this.connection.send({ type: "frame_ack", number });
    const applied = state.applied.find(([client]) => client === this.handle.client);
    if (applied !== undefined) this.latency.drawn(applied[1], now);
    const beside = Math.min(1, state.beside_factor / Math.max(state.real_time_factor, 1e-3));
    this.handle.frame = { number, session, tick: state.tick, time: state.time, beside };
    this.lastFrame = message;
    if (this.handle.firstFrame === null) {
      this.handle.firstFrame = now;
      this.settleReady(now);
      this.overlay.hideStarting();
    }
    this.hand.see(state.tools);
    this.hand.felt = Math.hypot(...(state.tools.at(this.hand.tool)?.force ?? [0, 0, 0]));
    this.header.setFrame(state);
    this.force.setFrame(state, this.view.sparks(), this.view.arrows.scale, now);
    this.force.setStiffness(this.hand.stiffness(state.tools));
    this.parameters.setValues(state.parameters, now);
    this.insets.setValues(state.parameters, now);
    this.measures.setValues(state.measures, state.drill, now);
    this.training.drill.setState(state.drill, state.measures);
    this.training.recordings.setTime(state.time);
    this.tables.setValues(state.tables, now);
    this.timings.setFrame(state, {
      framesPerSecond: this.pictures.perSecond(now), latency: this.latency.median(),
      roundTrip: this.connection.roundTrip, pixelShare: this.view.pixelShare(),
    }, now);
  }

  private placeLabels(): void {
    const arrow = this.view.arrows.shown.at(0);
    this.overlay.placeForce(arrow === undefined ? null : this.view.project(arrow.end), arrow?.newtons ?? 0, this.precise ? 3 : 2);
    const words = [this.hand.acting ? (this.hand.instrument()?.action ?? "") : "", this.hand.keepsDepth() ? "keeps its depth (D)" : ""];
    this.overlay.placeAction(this.hand.cursor, words.filter((word) => word !== "").join(" · "));
    if (this.handle.firstFrame === null) return;
    this.overlay.placeHint(this.view.hintPlace(), this.hand.cursor !== null);
  }

  private pixelsPerMetre(): number {
    const { camera } = this.view;
    const half = Math.tan((camera.fov * Math.PI) / 360);
    return this.view.size().height / (2 * half * this.view.orbit.distance());
  }

  private fit(): void {
    const free = freeArea();
    tellStyle(free);
    const left = besideCards(this.insets.beside() ? besidePictures(free) : free);
    this.view.setFreeArea(left);
    this.marks.setField(left);
    this.eyes.sender.setField(left);
    this.force.redraw();
  }

  private makeHandle(): Handle {
    return {
      client: null,
      frame: null,
      firstFrame: null,
      ready: new Promise((resolve) => (this.settleReady = resolve)),
      ...viewPart(this.view),
      texels: (name) => this.view.skins.texture(name)?.texels ?? this.view.volumes.image(name)?.texels ?? this.insets.image(name)?.texels ?? null,
      marks: () => this.marks.marks(),
      tip: () => this.hand.tip?.toArray() ?? null, tool: () => this.hand.tool,
      tools: () => (this.lastFrame?.state.tools ?? []).map(({ active, position, orientation, force, grip }) => ({ active, position, orientation, force, grip })),
      actingPoints: () => (this.lastFrame?.state.tools ?? []).map((tool) => actingPoint(tool, this.scene?.scene.instruments[tool.tool])),
      latency: () => this.latency.median(),
      parameters: () => this.lastFrame?.state.parameters ?? {},
      measures: () => this.lastFrame?.state.measures ?? {},
      drill: () => this.lastFrame?.state.drill ?? null,
      tables: () => this.lastFrame?.state.tables ?? {},
      watched: () => this.training.recordings.shown(),
      seek: (at) => this.connection.send({ type: "seek", at }),
      pause: (paused) => this.connection.send({ type: "control", action: paused ? "pause" : "resume" }),
      speed: (value) => this.connection.send({ type: "control", action: "speed", value }),
      stats: () => ({
        framesDrawn: this.view.framesDrawn, framesReceived: this.framesReceived, software: this.view.software,
        framesPerSecond: this.pictures.perSecond(performance.now()), pixelShare: this.view.pixelShare(),
      }),
    };
  }
}

const view = openView();
if (view !== null) new Page(view).start();
