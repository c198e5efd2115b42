import { mapOutputs } from '#core/blueprint/execution/prefill.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import type { Subject } from '../definitions/publications/visibility.ts';
import { type InstanceStep, type StateDeps, type StepView, viewSteps } from './accumulated-state.ts';
import { type AuthorityDeps, viewerOf } from './authority.ts';
import { getAction, type PinnedDefinition } from './definitions.ts';
import { openActions, walletsOf } from './instance.ts';
import { pinnedOf, type ReadDeps } from './read.ts';
import { listSteps } from './store.ts';
import type { InstanceView } from './view.ts';

export interface PrefillDeps extends Pick<ReadDeps, 'db' | 'clock'>, StateDeps, AuthorityDeps {}

/** The step that made an action current, when its route may write data for it. */
export function prefillSource(steps: readonly InstanceStep[], actionId: number): InstanceStep | undefined {
  return steps.findLast(
    ({ isRejection, routing }) =>
      !isRejection && routing.nextActions.some((next) => next.actionId === actionId),
  );
}

/** What the route of a step writes for the actions behind it, out of what a viewer reads of the step. */
export function prefillOf(pinned: PinnedDefinition, view: StepView | undefined): JsonObject {
  const route = view && routeOf(pinned, view.step);
  if (view?.data === undefined || route?.outputMapping === undefined) return {};
  const names = new Set(Object.keys(getAction(pinned, view.step.actionId).calculations ?? {}));
  const parts = Object.entries(view.data);
  const payload = Object.fromEntries(parts.filter(([name]) => !names.has(name)));
  const calculations = Object.fromEntries(parts.filter(([name]) => names.has(name)));
  return mapOutputs(route, { payload, calculations });
}

function routeOf(pinned: PinnedDefinition, { actionId, routing }: InstanceStep) {
  return getAction(pinned, actionId).routes?.find(({ id }) => id === routing.routeId);
}

/**
 * The data that the caller's submission of an action begins with. Only the wallet that can take the action now sees it;
 * others get an empty object. Null when it was disclosed to that wallet and cannot be opened.
 * @param given delegated token of the caller, needed only when something has to be decrypted
 * @throws AppError not_found ACTION_NOT_FOUND, conflict PIN_UNRESOLVABLE, forbidden DELEGATION_INVALID, unavailable
 */
export async function readPrefill(
  deps: PrefillDeps,
  subject: Subject,
  { view, actionId }: { readonly view: InstanceView; readonly actionId: number },
  given: string | undefined,
): Promise<JsonObject | null> {
  const { instance, wallets } = view;
  const pinned = pinnedOf(view);
  const wallet = walletsOf(instance, pinned.workflow).get(getAction(pinned, actionId).sender);
  const open = openActions(instance, pinned.workflow, deps.clock.nowMs());
  const isCurrent = open.some((each) => each.actionId === actionId);
  if (!isCurrent || wallet === undefined || !wallets.includes(wallet)) return {};
  const steps = await listSteps(deps.db.read, instance.registerId, instance.instanceId);
  const source = prefillSource(steps, actionId);
  if (source === undefined || routeOf(pinned, source)?.outputMapping === undefined) return {};
  const viewer = viewerOf(deps, subject, { wallets: [wallet] }, given);
  const [read] = await viewSteps(deps, { instance, pinned }, [source], viewer);
  return read?.data === undefined && read?.isUnopened === true ? null : prefillOf(pinned, read);
}
