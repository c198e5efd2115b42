import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import type { JsonObject } from '../../../encoding/json.ts';
import { judgeStep, type StepRecord } from '../judge.ts';
import { compileWorkflow } from '../workflow.ts';
import { spoiltTexts } from './spoilt.ts';
import { addressOf, arbChoices, arbDefinition, PIN, randomWalk, Walk, type WalkedStep } from './walks.ts';

const folder = new URL('../../vectors/', import.meta.url);
const permit: JsonObject = JSON.parse(readFileSync(new URL('site-permit.json', folder), 'utf8'));

/** A changed step at one place of a walk, and the code that refuses it; null when it is right as well. */
interface SpoiltStep {
  readonly at: number;
  /** Members of the record that are changed. */
  readonly change: Readonly<Record<string, unknown>>;
  /** Ticks of 100 ns; that of the step when it is absent. */
  readonly now?: string;
  readonly isPinKnown?: false;
}

const seed = 20_261_122;

function judged(step: WalkedStep, spoilt: SpoiltStep): SpoiltStep & { readonly code: string | null } {
  const { context, record } = step;
  const nowTicks = spoilt.now === undefined ? context.nowTicks : BigInt(spoilt.now);
  const changed: StepRecord = { ...record, ...spoilt.change };
  const [found] = judgeStep(changed, { ...context, nowTicks, isPinKnown: spoilt.isPinKnown ?? true });
  return { ...spoilt, code: found?.code ?? null };
}

function changesOf({ record }: WalkedStep): SpoiltStep['change'][] {
  return [
    { senderAddress: addressOf('m') },
    { type: record.type === 'Action' ? 'Rejection' : 'Action' },
    { blueprintId: 'other' },
    { actionId: '999' },
    { previousTransactionId: PIN },
    { previousTransactionId: 'ef'.repeat(32) },
    { metadata: { ...record.metadata, instanceId: 'other' } },
    { metadata: {} },
    { createdAt: '2027-11-22T10:00:00Z' },
    { createdAt: 'soon' },
  ];
}

function spoiltSteps(walk: Walk, at: number) {
  const step = walk.steps[at];
  if (step === undefined) return [];
  const { record, context } = step;
  const texts = fc.sample(fc.constantFrom(...spoiltTexts(step)), { numRuns: 8, seed: seed + at });
  const routed = texts.map((routing) => ({ metadata: { ...record.metadata, routing } }));
  const now = String(context.nowTicks + 3_650n * 864_000_000_000n);
  const spoilt: SpoiltStep[] = [
    ...[...routed, ...changesOf(step)].map((change) => ({ at, change })),
    { at, change: {}, now },
    { at, change: {}, isPinKnown: false },
  ];
  return spoilt.map((each) => judged(step, each));
}

function vectorOf(definition: JsonObject, walk: Walk) {
  const steps = walk.steps.map(({ record, context }) => ({ ...record, now: String(context.nowTicks) }));
  const last = walk.steps.length - 1;
  const places = [...new Set([0, Math.floor(last / 2), last])];
  return { definition, steps, spoilt: places.flatMap((at) => spoiltSteps(walk, at)) };
}

function permitWalk(...steps: readonly (readonly [actionId: number, routeId: string | undefined])[]): Walk {
  const workflow = compileWorkflow(permit);
  if (workflow === undefined) throw new Error('The example does not compile');
  const walk = new Walk(workflow);
  for (const [actionId, routeId] of steps) {
    walk.seconds += 60;
    walk.take(actionId, routeId === undefined ? { isRejection: true } : { routeId });
  }
  return walk;
}

function vectors() {
  const arbCase = fc.tuple(arbDefinition, arbChoices).map(([definition, choices]) => ({
    definition,
    walk: randomWalk(definition, choices.slice(0, 16)),
  }));
  const long = arbCase.filter(({ walk }) => walk.steps.length > 3);
  const drawn = fc.sample(long, { numRuns: 14, seed });
  const broken = fc.sample(fc.tuple(arbDefinition, fc.jsonValue(), fc.nat(30)), { numRuns: 60, seed });
  return {
    pin: PIN,
    walks: [
      vectorOf(
        permit,
        permitWalk([0, 'risky'], [1, undefined], [0, 'risky'], [1, 'reviewed'], [2, 'approved'], [3, 'done']),
      ),
      vectorOf(permit, permitWalk([0, 'plain'], [2, 'approved'], [3, undefined])),
      ...drawn.map(({ definition, walk }) => vectorOf(definition, walk)),
    ],
    definitions: broken.map(([definition, value, at]) => {
      const text = replaceNth(JSON.stringify(definition), JSON.stringify(value), at);
      return { text, compiles: compileWorkflow(JSON.parse(text)) !== undefined };
    }),
  };
}

/** The text with the nth number or string behind a colon replaced by another value. */
function replaceNth(text: string, value: string, at: number): string {
  const places = [...text.matchAll(/(?<=:)(?:"[^"]*"|\d+|true|false)/g)];
  const place = places[at % places.length];
  if (place === undefined) return text;
  return text.slice(0, place.index) + value + text.slice(place.index + place[0].length);
}

function line(value: unknown): string {
  return `  ${JSON.stringify(value)}`;
}

/** Text of vectors/steps.json, one case a line; the same for each run of one version of the library that draws. */
export function vectorsText(): string {
  const { pin, walks, definitions } = vectors();
  const list = (name: string, items: readonly unknown[]) => `"${name}":[\n${items.map(line).join(',\n')}\n]`;
  return `{"pin":"${pin}",\n${list('walks', walks)},\n${list('definitions', definitions)}}\n`;
}
