import type { Action } from '#core/blueprint/model/blueprint.ts';
import type { JsonSchema } from '#core/blueprint/model/values.ts';
import { compileSchemas, type JudgePayload as Judge } from '#core/blueprint/schemas/compile.ts';
import { flattenSchemas } from '#core/blueprint/schemas/flatten.ts';
import { getAction, type PinnedDefinition } from '../instances/definitions.ts';

/** Judges live as long as their definition is kept. */
function kept(pinned: PinnedDefinition, name: string, compile: (action: Action) => Judge, actionId: number) {
  const judge = pinned.judges.get(name);
  if (judge !== undefined) return judge;
  const made = compile(flatAction(pinned, actionId));
  pinned.judges.set(name, made);
  return made;
}

/** An action whose schemas refer to none outside it. */
function flatAction(pinned: PinnedDefinition, actionId: number): Action {
  const { blueprint } = flattenSchemas(pinned.blueprint);
  return getAction({ blueprint }, actionId);
}

/** The data schemas of an action, which refer to none outside it; they live as long as their definition is kept. */
export function payloadSchemas(pinned: PinnedDefinition, actionId: number): readonly JsonSchema[] {
  const known = pinned.payloadSchemas.get(actionId);
  if (known !== undefined) return known;
  const schemas = flatAction(pinned, actionId).dataSchemas ?? [];
  pinned.payloadSchemas.set(actionId, schemas);
  return schemas;
}

/** Matches payloads with the data schemas of an action. */
export function payloadJudge(pinned: PinnedDefinition, actionId: number): Judge {
  return kept(pinned, `action ${actionId}`, (action) => compileSchemas(action), actionId);
}

/** Matches the data of rejections of an action with its schema. */
export function rejectionJudge(pinned: PinnedDefinition, actionId: number): Judge {
  const compile = ({ rejectionConfig }: Action) => {
    const schema = rejectionConfig?.rejectionSchema;
    return compileSchemas({ dataSchemas: schema === undefined ? [] : [schema] });
  };
  return kept(pinned, `rejection ${actionId}`, compile, actionId);
}
