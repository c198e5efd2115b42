import type { Action } from '#core/blueprint/model/blueprint.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import type { Database } from '#kit/db/db.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import {
  accumulate,
  type InstanceOf,
  lastSteps,
  type StateDeps,
  type Viewer,
  viewSteps,
} from './accumulated-state.ts';
import { prefillOf, prefillSource } from './prefill.ts';
import { listSteps } from './store.ts';

interface EarlierDeps extends StateDeps {
  readonly db: Pick<Database<BlueprintDatabase>, 'read'>;
}

/** What an action of an instance is evaluated over, beside its submission. */
interface EarlierData {
  readonly state: {
    /** Data of each action that was taken, by its id in decimal. */
    readonly actions: JsonObject;
    readonly merged: JsonObject;
  };
  readonly prefill: JsonObject;
}

/**
 * The data of earlier actions as a viewer reads it: of those that the action requires, else of all. The prefill is what
 * the viewer reads of the step that made the action current.
 * @throws AppError unprocessable STATE_INCOMPLETE for data that was disclosed to the viewer and cannot be opened
 */
export async function readEarlierData(
  deps: EarlierDeps,
  where: InstanceOf,
  action: Pick<Action, 'id' | 'requiredPriorActions'>,
  viewer: Viewer,
): Promise<EarlierData> {
  const { registerId, instanceId } = where.instance;
  const steps = await listSteps(deps.db.read, registerId, instanceId);
  const required = action.requiredPriorActions ?? [];
  const needed = lastSteps(steps, required.length > 0 ? required : undefined);
  const source = prefillSource(steps, action.id);
  const wanted = source === undefined || needed.includes(source) ? needed : [...needed, source];
  const views = await viewSteps(deps, where, wanted, viewer);
  const state = accumulate(views.filter(({ step }) => needed.includes(step)));
  if (state.unopened.length > 0)
    throw refusal('STATE_INCOMPLETE', { details: { missing: [...state.unopened] } });
  const actions = [...state.actions].map(([id, { data }]) => [String(id), data] as const);
  const written = views.find(({ step }) => step === source);
  return {
    state: { actions: Object.fromEntries(actions), merged: state.merged },
    prefill: prefillOf(where.pinned, written),
  };
}
