import type { Workflow } from '#core/blueprint/steps/workflow.ts';
import { blueprintEvent } from '#core/events/blueprint-events.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { appendEvent } from '#kit/db/outbox.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Ledger, LedgerPosition, StepPage } from '../../clients/ledger.ts';
import type { InstanceTables } from '../../database/instance-tables.ts';
import { foldPage, type StepNotice } from './fold-page.ts';
import {
  type Cursor,
  findCursor,
  isAnyStarted,
  listRebuilding,
  lockCursor,
  markRestored,
  saveCursor,
} from './progress/store.ts';
import { findStep, type SealedStep } from './step.ts';
import { loadHeads, writePage } from './store.ts';

/** Workflows of pins of one register. */
interface WorkflowSource {
  /** The workflow of a pin; undefined when it does not resolve. */
  findWorkflow(registerId: string, pin: string): Promise<Workflow | undefined>;
}

interface ProjectorDeps {
  readonly db: Database<InstanceTables>;
  readonly source: Pick<Ledger, 'listRegisters' | 'readSteps'>;
  readonly workflows: WorkflowSource;
  readonly log: Logger;
  readonly clock: Clock;
  /** Signals that the outbox has new rows. */
  readonly notify: () => void;
  /** Counts sealed steps that changed nothing, by reason. */
  readonly countIgnored: (reason: string) => void;
}

/** A page of steps, the position that it was read from, and the cursor that was stored then. */
interface ReadPage {
  readonly stored: Cursor;
  readonly from: LedgerPosition;
  readonly page: StepPage;
}

/** Dockets without a step after which the cursor is stored nevertheless. */
const LAZY_DOCKETS = 1_000;

/** Keeps the rows of instances up to date with the ledger. Fold, cursor and events of a page commit together. */
export class Projector {
  readonly #deps: ProjectorDeps;
  /** How far registers were read behind their stored cursor: nothing between the two is a step. */
  readonly #ahead = new Map<string, { readonly stored: Cursor; readonly read: LedgerPosition }>();
  /** Heights that were read up to, by register. */
  readonly #heights = new Map<string, number>();
  /** Waits for a register to be read up to its head, by register. */
  readonly #passes = new Map<string, Promise<void>>();

  constructor(deps: ProjectorDeps) {
    this.#deps = deps;
  }

  /** Reads all registers up to their heads. */
  async catchUp(signal: AbortSignal): Promise<void> {
    for (const registerId of await listRebuilding(this.#deps.db.read)) this.#heights.delete(registerId);
    for (const { registerId, height } of await this.#deps.source.listRegisters()) {
      if (signal.aborted) return;
      if (this.#heights.get(registerId) === height) continue;
      await this.catchUpRegister(registerId);
      this.#heights.set(registerId, height);
    }
  }

  /** Reads one register up to the head that it has now. Concurrent calls share the passes that begin after them. */
  async catchUpRegister(registerId: string): Promise<void> {
    const running = this.#passes.get(registerId);
    const pass = (running ?? Promise.resolve()).catch(() => undefined).then(() => this.#readAll(registerId));
    this.#passes.set(registerId, pass);
    try {
      await pass;
    } finally {
      if (this.#passes.get(registerId) === pass) this.#passes.delete(registerId);
    }
  }

  async #readAll(registerId: string): Promise<void> {
    while (!(await this.#readPage(registerId))) {
      // The next page.
    }
  }

  /** @returns whether the register is read up to its head */
  async #readPage(registerId: string): Promise<boolean> {
    const { db, source } = this.#deps;
    const stored = await findCursor(db.read, registerId);
    const ahead = this.#ahead.get(registerId);
    const from = ahead !== undefined && isSame(ahead.stored, stored) ? ahead.read : stored.next;
    const page = await source.readSteps(registerId, from);
    const isAtHead = page.next.docket >= page.height;
    // Dockets without steps cost no commit: the cursor moves at the next step, or after many dockets.
    const isWorthwhile =
      page.records.length > 0 ||
      page.next.docket - stored.next.docket >= LAZY_DOCKETS ||
      (stored.announced !== undefined && isAtHead);
    if (isWorthwhile && !(await this.#apply(registerId, { stored, from, page }))) return false;
    if (!isWorthwhile) this.#ahead.set(registerId, { stored, read: page.next });
    return isAtHead || isSamePosition(page.next, from);
  }

  /** @returns false when another replica was first, and the page has to be read again */
  async #apply(registerId: string, { stored, from, page }: ReadPage): Promise<boolean> {
    const { db, notify, countIgnored, log } = this.#deps;
    const steps = page.records.flatMap((placed) => findStep(placed) ?? []);
    const workflows = await this.#workflowsOf(
      registerId,
      steps.map(({ routing }) => routing.blueprintDefinitionTxId),
    );
    const announced = announcedOf(steps, stored.announced);
    const folded = await db.transact(async (tx) => {
      const { next, rebuilds } = await lockCursor(tx, registerId);
      // Another replica has folded beyond the position that this page was read from, or the rows were deleted since.
      if (isBefore(from, next) || rebuilds !== stored.rebuilds) return undefined;
      const ids = [...new Set(steps.map(({ routing }) => routing.instanceId))];
      const known = await loadHeads(tx, registerId, ids);
      const result = foldPage(registerId, steps, known, (pin) => workflows.get(pin));
      await writePage(tx, result);
      const notices = result.notices.filter(({ txId }) => !announced.has(txId));
      for (const notice of notices) await appendEvent(tx, eventOf(notice));
      await saveCursor(tx, registerId, page.next);
      const isRestored = isFirstPage(stored) && ids.length > 0 && !(await isAnyStarted(tx, ids));
      if (isRestored) await markRestored(tx, registerId, new Date(this.#deps.clock.nowMs()));
      return { ...result, notices, isRestored };
    });
    if (folded === undefined) return false;
    if (folded.notices.length > 0) notify();
    if (folded.isRestored) log.warn({ registerId }, restoredText);
    for (const { txId, reason } of folded.ignored) {
      countIgnored(reason);
      if (reason !== 'known') log.warn({ registerId, txId, reason }, 'a sealed step continues no instance');
    }
    return true;
  }

  async #workflowsOf(registerId: string, pins: readonly string[]): Promise<Map<string, Workflow>> {
    const workflows = new Map<string, Workflow>();
    for (const pin of new Set(pins)) {
      const workflow = await this.#deps.workflows.findWorkflow(registerId, pin);
      if (workflow !== undefined) workflows.set(pin, workflow);
    }
    return workflows;
  }
}

/** What a person must know who has lost a database. */
const restoredText =
  'instances are restored from the ledger: drafts, operations that were not sealed and chunks of files that no step claims are not in it';

/** Nothing of the register has been folded into this database. */
function isFirstPage({ next, rebuilds }: Cursor): boolean {
  return next.docket === 0 && next.index === 0 && rebuilds === 0;
}

function isBefore(one: LedgerPosition, other: LedgerPosition): boolean {
  return one.docket < other.docket || (one.docket === other.docket && one.index < other.index);
}

function isSamePosition(one: LedgerPosition, other: LedgerPosition): boolean {
  return one.docket === other.docket && one.index === other.index;
}

function isSame(one: Cursor, other: Cursor): boolean {
  return one.rebuilds === other.rebuilds && isSamePosition(one.next, other.next);
}

/** Transaction ids of the steps before a position. */
function announcedOf(steps: readonly SealedStep[], until: LedgerPosition | undefined): ReadonlySet<string> {
  const announced = until === undefined ? [] : steps.filter(({ placed }) => isBefore(placed.position, until));
  return new Set(announced.map(({ placed }) => placed.record.txId));
}

function eventOf(notice: StepNotice) {
  return blueprintEvent('StepSealed', { ...notice, available: [...notice.available] });
}
