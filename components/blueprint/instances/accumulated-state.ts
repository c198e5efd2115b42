import { discloseBy } from '#core/blueprint/execution/disclose.ts';
import type { Disclosure } from '#core/blueprint/model/blueprint.ts';
import {
  type Envelope,
  findClearPayload,
  findEnvelope,
  type GroupText,
} from '#core/blueprint/payload/envelope.ts';
import { mergeViews } from '#core/blueprint/payload/groups.ts';
import { type OpenedGroup, openGroups } from '#core/blueprint/payload/open.ts';
import { EVERYTHING } from '#core/blueprint/pointer.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import type { Ledger } from '../clients/ledger.ts';
import type { Wallets } from '../clients/wallets.ts';
import { getAction, type PinnedDefinition, rejectionTargets } from './definitions.ts';
import { type Instance, walletsOf } from './instance.ts';
import type { listSteps } from './store.ts';

export interface StateDeps {
  readonly ledger: Pick<Ledger, 'getPayloads'>;
  readonly wallets: Pick<Wallets, 'unwrapKeys'>;
}

export type InstanceStep = Awaited<ReturnType<typeof listSteps>>[number];

/** An instance with the definition that it runs by. */
export interface InstanceOf {
  readonly instance: Instance;
  readonly pinned: PinnedDefinition;
}

/** Whose view is computed, and by which authority. */
export interface Viewer {
  /** Wallets of the caller. */
  readonly wallets: readonly string[];
  /** A delegated token of the caller; asked for when something has to be decrypted. */
  readonly authority: () => Promise<string>;
  /** The texts of opened groups are wanted too. */
  readonly withTexts?: boolean;
}

/** A sealed step as a viewer reads it. */
export interface StepView {
  readonly step: InstanceStep;
  /** Undefined when nothing was disclosed to the viewer, or it cannot be opened. */
  readonly data: JsonObject | undefined;
  /** Something was disclosed to the viewer that cannot be opened. */
  readonly isUnopened: boolean;
  /** With texts: the opened groups as the viewer can show them to others; none of a payload in clear. */
  readonly texts: readonly GroupText[];
  /** Ids of the groups that the viewer opened. */
  readonly groupIds: readonly string[];
}

/** Data of an instance, as one caller may read it (specification document 3, section 4). */
interface AccumulatedState {
  readonly actions: ReadonlyMap<number, { readonly step: InstanceStep; readonly data: JsonObject }>;
  /** All of it, a later action's members over those of earlier ones. */
  readonly merged: JsonObject;
  /** Actions whose data was disclosed to the caller and cannot be opened. */
  readonly unopened: readonly number[];
  /** Actions of which the caller reads nothing, with `unopened` among them; ascending. */
  readonly missing: readonly number[];
}

const encryptionContext = '#platform:payload-encryption';

/** The steps as a viewer reads them, in their order. Only the viewer's own view is computed. */
export async function viewSteps(
  deps: StateDeps,
  where: InstanceOf,
  steps: readonly InstanceStep[],
  viewer: Viewer,
): Promise<readonly StepView[]> {
  if (steps.length === 0) return [];
  const { registerId, instanceId } = where.instance;
  const payloads = await deps.ledger.getPayloads(
    registerId,
    steps.map(({ txId }) => txId),
  );
  const envelopes = steps.flatMap(({ txId, actionId }) => {
    const payload = payloads.get(txId);
    const envelope = payload && findEnvelope(payload);
    // Groups of another step can be copied here; they would open, and show what this step does not say.
    const isOwn = envelope?.instanceId === instanceId && envelope.actionId === String(actionId);
    return envelope !== undefined && isOwn ? [{ registerId, txId, envelope }] : [];
  });
  const opened = await openAll(deps, envelopes, viewer);
  return steps.map((step) => {
    const payload = payloads.get(step.txId);
    if (payload === undefined) return { step, ...unopened, isUnopened: true };
    const clear = findClearPayload(payload);
    if (clear !== undefined) {
      const data = viewOfClear(clear.data, step, where, viewer.wallets);
      return { step, ...unopened, data };
    }
    return { step, ...(opened.get(step.txId) ?? unopened) };
  });
}

type Opened = Omit<StepView, 'step'>;

const unopened: Opened = { data: undefined, isUnopened: false, texts: [], groupIds: [] };

/** Opens what is addressed to the wallets; the views of several wallets are united. */
async function openAll(
  { wallets }: StateDeps,
  steps: readonly { readonly registerId: string; readonly txId: string; readonly envelope: Envelope }[],
  viewer: Viewer,
): Promise<ReadonlyMap<string, Opened>> {
  const found = new Map<string, Opened>();
  for (const address of viewer.wallets) {
    const kids = [`${address}${encryptionContext}`, address];
    const groups = await openGroups(
      steps,
      kids,
      async (keys) => wallets.unwrapKeys(address, keys, await viewer.authority()),
      { withTexts: viewer.withTexts === true },
    );
    for (const group of groups) found.set(group.txId, withGroup(found.get(group.txId) ?? unopened, group));
  }
  return found;
}

function withGroup(before: Opened, group: OpenedGroup): Opened {
  if ('failure' in group) return { ...before, isUnopened: true };
  // Several wallets of a viewer may be in one group.
  if (before.groupIds.includes(group.groupId)) return before;
  return {
    ...before,
    data: mergeViews(before.data ?? {}, group.data),
    texts: group.text === undefined ? before.texts : [...before.texts, group.text],
    groupIds: [...before.groupIds, group.groupId],
  };
}

/** A register of development keeps payloads in clear; the disclosures of the definition apply when they are read. */
function viewOfClear(
  data: JsonObject,
  step: InstanceStep,
  { instance, pinned }: InstanceOf,
  wallets: readonly string[],
): JsonObject | undefined {
  if (wallets.includes(step.sender)) return data;
  const roles = walletsOf(instance, pinned.workflow);
  const isViewer = (participant: string) => wallets.includes(roles.get(participant) ?? '');
  const own = disclosuresOf(pinned, step).filter((each) => isViewer(each.participantAddress));
  const view = discloseBy(
    own.flatMap(({ dataPointers }) => dataPointers),
    data,
  );
  return view.fieldCount > 0 ? view.data : undefined;
}

function disclosuresOf(
  pinned: PinnedDefinition,
  { actionId, isRejection }: InstanceStep,
): readonly Disclosure[] {
  const action = getAction(pinned, actionId);
  if (!isRejection) return action.disclosures;
  return rejectionTargets(pinned, action).map((target) => ({
    participantAddress: target,
    dataPointers: [EVERYTHING],
  }));
}

/** The last step of each action that was taken, in the order of the ledger; of those that are required, or of all. */
export function lastSteps(
  steps: readonly InstanceStep[],
  required: readonly number[] | undefined,
): readonly InstanceStep[] {
  const last = new Map<number, InstanceStep>();
  for (const step of steps) {
    const isNeeded = required === undefined || required.includes(step.actionId);
    if (isNeeded && !step.isRejection) last.set(step.actionId, step);
  }
  return [...last.values()].sort((one, other) => one.seq - other.seq);
}

/** Puts views of the last steps of actions together, in the order of the ledger. */
export function accumulate(views: readonly StepView[]): AccumulatedState {
  const actions = new Map<number, { step: InstanceStep; data: JsonObject }>();
  let merged: JsonObject = {};
  const [unopened, missing]: [number[], number[]] = [[], []];
  for (const { step, data, isUnopened } of views) {
    if (isUnopened) unopened.push(step.actionId);
    if (data === undefined) {
      missing.push(step.actionId);
      continue;
    }
    actions.set(step.actionId, { step, data });
    merged = { ...merged, ...data };
  }
  return { actions, merged, unopened, missing: missing.sort((one, other) => one - other) };
}
