import { canonicalJson } from '../../../encoding/jcs.ts';
import { parseRouting } from '../routing.ts';
import { addressOf, type WalkedStep } from './walks.ts';

function* alteredItems(list: readonly unknown[]): Generator<unknown> {
  yield [...list, { actionId: 999 }];
  for (const [at, item] of list.entries()) {
    yield list.toSpliced(at, 1);
    for (const other of alterations(item)) yield list.with(at, other);
  }
}

function* alteredMembers(value: object): Generator<unknown> {
  yield { ...value, more: 1 };
  for (const [name, member] of Object.entries(value)) {
    yield Object.fromEntries(Object.entries(value).filter(([other]) => other !== name));
    for (const other of alterations(member)) yield { ...value, [name]: other };
  }
}

function* alteredText(text: string): Generator<unknown> {
  yield `${text}0`;
  yield text.startsWith('w1')
    ? addressOf('m')
    : text.replace(/[0-9a-f]/, (digit) => (digit === '1' ? '2' : '1'));
}

/** Every copy of a JSON value with one member or item removed, added or altered. */
function* alterations(value: unknown): Generator<unknown> {
  if (Array.isArray(value)) yield* alteredItems(value);
  else if (typeof value === 'object' && value !== null) yield* alteredMembers(value);
  else if (typeof value === 'string') yield* alteredText(value);
  else yield typeof value === 'number' ? value + 1 : 'other';
}

/** Texts that differ from the routing of a step in one place. */
export function* spoiltTexts({ routing }: WalkedStep): Generator<string> {
  const text = canonicalJson(routing);
  const { ended = 'none', routeId = 'x', reasonCode = 'x' } = routing;
  const added = [
    ...['Completed', 'Rejected'].filter((end) => end !== ended).map((end) => ({ ...routing, ended: end })),
    { ...routing, routeId },
    { ...routing, reasonCode },
    { ...routing, isRejection: true },
  ];
  for (const other of [...alterations(routing), ...added]) {
    if (canonicalJson(other) !== text) yield canonicalJson(other);
  }
  yield ` ${text}`;
  yield text.slice(0, -1);
}

/**
 * Whether a text tells another step that is right as well: a reason may be there or not, and a first step may bind other
 * open participants.
 */
export function isAnotherStep(text: string, { routing, context }: WalkedStep): boolean {
  const other = parseRouting(text);
  if (other === undefined) return false;
  const { reasonCode: _, roles: known, ...rest } = routing;
  const { reasonCode, roles, ...others } = other;
  if (canonicalJson(rest) !== canonicalJson(others)) return false;
  const isBinding = routing.seq === 0 && canonicalJson(roles) !== canonicalJson(known);
  const route = context.workflow?.actions.get(routing.completedActionId)?.routes.get(routing.routeId ?? '');
  const isReason = reasonCode === undefined || route?.reasons.has(reasonCode) === true;
  return isReason && (isBinding || reasonCode !== routing.reasonCode);
}
