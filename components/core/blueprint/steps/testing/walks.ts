import fc from 'fast-check';
import type { JsonObject } from '../../../encoding/json.ts';
import { formatLedgerTimestamp, parseTimestamp, ticksToMicros } from '../../../encoding/timestamp.ts';
import { advance, type Step } from '../advance.ts';
import type { SealedStep } from '../instance.ts';
import type { Predecessor, StepContext, StepRecord } from '../judge.ts';
import { encodeRouting, type Routing } from '../routing.ts';
import { compileWorkflow, type Workflow } from '../workflow.ts';

export const PIN = 'ab'.repeat(32);
export const INSTANCE = '7c9e6679-7425-40de-944b-e07fc1f90ae7';

/** A wallet address by one letter of the bech32 alphabet; its checksum is not right. */
export function addressOf(letter: string): string {
  return `w1${'q'.repeat(58)}${letter}`;
}

/** A ledger timestamp some seconds after a fixed moment. */
export function moment(seconds: number): string {
  const ticks = parseTimestamp('2026-11-22T10:00:00Z') + BigInt(Math.round(seconds * 1e7));
  return formatLedgerTimestamp(ticksToMicros(ticks));
}

/** One sealed step of a walk, with all that judging it needs. */
export interface WalkedStep {
  readonly record: StepRecord & {
    readonly txId: string;
    readonly metadata: Readonly<Record<string, string>>;
  };
  readonly context: StepContext;
  readonly routing: Routing;
  readonly sealed: SealedStep;
}

/** Compiles a definition that the test holds to be well-formed. */
export function compiled(definition: JsonObject): Workflow {
  const workflow = compileWorkflow(definition);
  if (workflow === undefined) throw new Error('The definition does not compile');
  return workflow;
}

/** Walks through one instance of a workflow as the service and a register do. */
export class Walk {
  readonly steps: WalkedStep[] = [];
  readonly workflow: Workflow;
  seconds = 0;

  constructor(workflow: Workflow) {
    this.workflow = workflow;
  }

  get last(): WalkedStep | undefined {
    return this.steps.at(-1);
  }

  get routing(): Routing | undefined {
    return this.last?.routing;
  }

  /** Current actions as `id`, or `id branch`, without deadlines. */
  get current(): string[] {
    const current = this.routing?.current ?? [];
    return current.map(({ actionId, branchKey }) =>
      [actionId, branchKey].filter((x) => x !== undefined).join(' '),
    );
  }

  /** The participant's own wallet, or the one that plays an open participant. */
  senderOf(actionId: number): string {
    const participant = this.workflow.actions.get(actionId)?.sender ?? '';
    const index = [...this.workflow.participants.keys()].indexOf(participant);
    return this.workflow.participants.get(participant) ?? addressOf('pzry9x8g'.charAt(index % 8));
  }

  step(actionId: number, more: Partial<Step> = {}): Step {
    const pin = PIN;
    const createdAt = moment(this.seconds);
    return { instanceId: INSTANCE, pin, actionId, sender: this.senderOf(actionId), createdAt, ...more };
  }

  /** Codes with which the step is refused, without taking it. */
  refusal(actionId: number, more: Partial<Step> = {}): string[] {
    const advanced = advance(this.workflow, this.routing, this.step(actionId, more));
    return 'violations' in advanced ? advanced.violations.map(({ code }) => code) : [];
  }

  /** Takes a step; false when it is refused. */
  take(actionId: number, more: Partial<Step> = {}): boolean {
    const step = this.step(actionId, more);
    const advanced = advance(this.workflow, this.routing, step);
    if ('violations' in advanced) return false;
    this.#seal(step, advanced.routing);
    return true;
  }

  #predecessor(): Predecessor {
    const { last } = this;
    if (last === undefined) return { txId: PIN, type: 'Control' };
    const { txId, type, metadata } = last.record;
    return { txId, type, routing: metadata['routing'] };
  }

  #seal(step: Step, routing: Routing): void {
    const predecessor = this.#predecessor();
    const number = this.steps.length;
    const record = {
      txId: (number + 1).toString(16).padStart(64, '0'),
      type: step.isRejection ? 'Rejection' : 'Action',
      blueprintId: this.workflow.blueprintId,
      actionId: String(step.actionId),
      previousTransactionId: predecessor.txId,
      senderAddress: step.sender,
      createdAt: step.createdAt,
      metadata: { instanceId: step.instanceId, routing: encodeRouting(routing) },
    };
    const { txId, previousTransactionId, senderAddress, createdAt } = record;
    const sealedAt = moment(this.seconds);
    const position = { docketNumber: 5 + number * 2, index: number % 3 };
    this.steps.push({
      record,
      context: { workflow: this.workflow, isPinKnown: true, predecessor, nowTicks: parseTimestamp(sealedAt) },
      routing,
      sealed: { txId, previousTransactionId, senderAddress, createdAt, sealedAt, position, routing },
    });
  }
}

const participants = [
  { id: 'a', name: 'Open', extra: 1 },
  { id: 'b', name: 'Closed', walletAddress: addressOf('v') },
  { id: 'c', name: 'Open, too', walletAddress: null },
];

function someOf(actionIds: readonly number[], most: number) {
  return fc.subarray([...actionIds], { maxLength: Math.min(most, actionIds.length) });
}

function arbRoute(actionIds: readonly number[]) {
  return fc.record(
    {
      nextActionIds: someOf(actionIds, 3),
      branchDeadline: fc.constantFrom('PT20S', 'P1D', 'PT1M'),
      'x-decision-notice': fc.constant({ adverse: true, reasons: { late: 'Too late' } }),
    },
    { requiredKeys: ['nextActionIds'] },
  );
}

function arbAction(id: number, actionIds: readonly number[]) {
  return fc.record(
    {
      id: fc.constant(id),
      sender: fc.constantFrom('a', 'b', 'c'),
      isStartingAction: fc.constant(id === actionIds[0]),
      requiredPriorActions: someOf(actionIds, 2),
      routes: fc
        .array(arbRoute(actionIds), { minLength: 1, maxLength: 3 })
        .map((routes) => routes.map((route, at) => ({ id: ['x', 'y.1/%', 'z'][at] ?? '', ...route }))),
      rejectionConfig: fc.oneof(
        fc.record({ targetActionId: fc.constantFrom(...actionIds) }),
        fc.constant({ isTerminal: true }),
      ),
    },
    { requiredKeys: ['id', 'sender', 'isStartingAction'] },
  );
}

/** Small definitions with fan-outs, joins, loops, deadlines and rejections. */
export const arbDefinition: fc.Arbitrary<JsonObject> = fc.integer({ min: 1, max: 7 }).chain((count) => {
  const ids = Array.from({ length: count }, (_, index) => index * 3);
  const actions = fc.tuple(...ids.map((id) => arbAction(id, ids)));
  return actions.map((list) => ({ id: 'random', title: 'Random', participants, actions: list }));
});

/** Takes steps that choices pick among all that the current state offers; refused ones are passed over. */
export function randomWalk(definition: JsonObject, choices: readonly number[]): Walk {
  const walk = new Walk(compiled(definition));
  for (const choice of choices) {
    walk.seconds += choice % 13;
    const starts = [...walk.workflow.actions.values()].filter(({ isStarting }) => isStarting);
    const current = walk.routing?.current.map(({ actionId }) => actionId) ?? starts.map(({ id }) => id);
    const actionId = current[choice % Math.max(current.length, 1)];
    if (actionId === undefined) break;
    const routes = [...(walk.workflow.actions.get(actionId)?.routes.values() ?? [])];
    const route = choice % 7 === 0 ? undefined : routes[Math.floor(choice / 16) % routes.length];
    const reasonCode = choice % 2 === 0 ? undefined : [...(route?.reasons ?? [])][0];
    if (route === undefined && routes.length > 0) walk.take(actionId, { isRejection: true });
    else walk.take(actionId, { routeId: route?.id, reasonCode });
  }
  return walk;
}

export const arbChoices = fc.array(fc.nat(1_000), { minLength: 5, maxLength: 40 });
