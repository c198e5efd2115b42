import { type SealedStep, stateAt } from '#core/blueprint/steps/instance.ts';
import type { CurrentAction } from '#core/blueprint/steps/routing.ts';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import { isReadableLine } from '#core/encoding/readable.ts';
import { parseTimestamp } from '#core/encoding/timestamp.ts';
import type { VerifiedInstance } from './instance.ts';

/** Text of a definition, which may hold anything, as it can be shown on one line. */
function readable(value: unknown): string {
  return typeof value === 'string' && value !== '' && isReadableLine(value) ? value : '(not readable)';
}

function titlesOf({ actions }: JsonObject): ReadonlyMap<unknown, string> {
  const list: readonly unknown[] = Array.isArray(actions) ? actions : [];
  return new Map(list.filter(isJsonObject).map((action) => [action['id'], readable(action['title'])]));
}

type NameAction = (actionId: number) => string;

function branchText({ branchKey }: Pick<CurrentAction, 'branchKey'>): string {
  return branchKey === undefined ? '' : `, branch ${readable(branchKey)}`;
}

function stepText(
  { routing, txId, sealedAt, senderAddress, position }: SealedStep,
  sender: string,
  name: NameAction,
): string {
  const { seq, completedActionId, routeId, reasonCode, isRejection, nextActions } = routing;
  const route = routeId === undefined ? '' : `, route ${readable(routeId)}`;
  const reason = reasonCode === undefined ? '' : `, reason ${readable(reasonCode)}`;
  const next = nextActions.map((each) => `${name(each.actionId)}${branchText(each)}`).join('; ');
  const lines = [
    `  ${String(seq).padStart(3)}  ${name(completedActionId)}${isRejection ? ', rejected' : ''}${route}${reason}`,
    `by ${sender} ${senderAddress}`,
    `docket ${position.docketNumber}, sealed ${sealedAt}, transaction ${txId}`,
    ...(next === '' ? [] : [`then ${next}`]),
  ];
  return `${lines.join('\n       ')}\n`;
}

function currentText(
  { instance }: VerifiedInstance,
  name: NameAction,
): readonly (readonly [string, string])[] {
  return instance.current.map((entry) => {
    const until = entry.until === undefined ? '' : `, until ${entry.until}`;
    return ['current', `${name(entry.actionId)}${branchText(entry)}${until}`];
  });
}

/** The path of an instance, for people. Its state is that at the time of the register's last docket. */
export function instanceText(verified: VerifiedInstance): string {
  const { instance, steps, pinned, others, readAt } = verified;
  const { definition, workflow, docketNumber } = pinned;
  const titles = titlesOf(definition);
  const name: NameAction = (id) => `${titles.get(id) ?? readable(undefined)} (action ${id})`;
  const { state, stateReason } = stateAt(instance, parseTimestamp(readAt));
  const counts = `${instance.completedActionCount} actions, ${instance.rejectionCount} rejections`;
  const rows: readonly (readonly [string, string])[] = [
    ['instance', instance.instanceId],
    ['blueprint', `${readable(definition['id'])} "${readable(definition['title'])}"`],
    ['definition', `${instance.blueprintDefinitionTxId}, docket ${docketNumber}`],
    ['state', `${state}${stateReason === undefined ? '' : `, ${stateReason}`}; ${counts}`],
    ...currentText(verified, name),
    ...(others === 0 ? [] : [['not counted', `${others} steps behind later starts of the same id`] as const]),
  ];
  const lines = rows.map(([label, value]) => `  ${label.padEnd(13)} ${value}\n`);
  const path = steps.map((step) => {
    const sender = workflow?.actions.get(step.routing.completedActionId)?.sender;
    return stepText(step, readable(sender), name);
  });
  return `Each step follows from its definition.\n${lines.join('')}\n${path.join('')}`;
}
