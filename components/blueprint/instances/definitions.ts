import type { Action, Blueprint } from '#core/blueprint/model/blueprint.ts';
import { parseBlueprint } from '#core/blueprint/model/parse.ts';
import type { JsonSchema } from '#core/blueprint/model/values.ts';
import type { JudgePayload } from '#core/blueprint/schemas/compile.ts';
import { compileWorkflow, type Workflow } from '#core/blueprint/steps/workflow.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { refusal } from '../errors.ts';
import { CompiledLogic } from '../evaluation/logic.ts';

/** A published definition, as instances use it. */
export interface PinnedDefinition {
  readonly registerId: string;
  readonly pin: string;
  readonly definition: JsonObject;
  readonly blueprint: Blueprint;
  readonly workflow: Workflow;
  /** Publications are judged before they are sealed, but not by every installation: a fault is PIN_UNRESOLVABLE. */
  readonly logic: CompiledLogic;
  /** Compiled schemas of its actions and rejections, by name; filled as they are used. */
  readonly judges: Map<string, JudgePayload>;
  /** Data schemas by action, without references to other ones; filled as they are used. */
  readonly payloadSchemas: Map<number, readonly JsonSchema[]>;
}

/** Finds the definition that a publication on a register holds; undefined when it is not known here. */
type FindPublished = (registerId: string, pin: string) => Promise<JsonObject | undefined>;

/** Definitions kept in memory. A publication never changes, so entries are only evicted for room. */
const MOST_KEPT = 256;

/** Published definitions by pin, parsed once. */
export class Definitions {
  readonly #find: FindPublished;
  readonly #kept = new Map<string, PinnedDefinition>();
  readonly #workflows = new Map<string, Workflow>();

  constructor(find: FindPublished) {
    this.#find = find;
  }

  /** The workflow of a pin; undefined when the pin does not resolve or its definition decides no steps. */
  async findWorkflow(registerId: string, pin: string): Promise<Workflow | undefined> {
    const key = keyOf(registerId, pin);
    const kept = this.#workflows.get(key);
    if (kept !== undefined) return kept;
    const definition = await this.#find(registerId, pin);
    const workflow = definition && compileWorkflow(definition);
    if (workflow !== undefined) keep(this.#workflows, key, workflow);
    return workflow;
  }

  /** The definition of a pin; undefined when it does not resolve here or no blueprint service would have published it. */
  async find(registerId: string, pin: string): Promise<PinnedDefinition | undefined> {
    const key = keyOf(registerId, pin);
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const definition = await this.#find(registerId, pin);
    const workflow = definition && compileWorkflow(definition);
    if (definition === undefined || workflow === undefined) return undefined;
    const parsed = parseBlueprint(definition);
    if (!('blueprint' in parsed)) return undefined;
    const { blueprint } = parsed;
    const caches = { logic: new CompiledLogic(refuseLogic), judges: new Map(), payloadSchemas: new Map() };
    const pinned = { registerId, pin, definition, blueprint, workflow, ...caches };
    keep(this.#kept, key, pinned);
    return pinned;
  }

  /** @throws AppError conflict PIN_UNRESOLVABLE */
  async get(registerId: string, pin: string): Promise<PinnedDefinition> {
    const found = await this.find(registerId, pin);
    if (found === undefined) throw refusal('PIN_UNRESOLVABLE');
    return found;
  }
}

/** @throws AppError not_found ACTION_NOT_FOUND */
export function getAction({ blueprint }: Pick<PinnedDefinition, 'blueprint'>, actionId: number): Action {
  const action = blueprint.actions.find(({ id }) => id === actionId);
  if (action === undefined) throw refusal('ACTION_NOT_FOUND');
  return action;
}

/** The participant whom a rejection of an action is for. */
export function rejectionTargets(
  { blueprint }: Pick<PinnedDefinition, 'blueprint'>,
  { rejectionConfig }: Pick<Action, 'rejectionConfig'>,
): readonly string[] {
  const { targetParticipantId, targetActionId } = rejectionConfig ?? {};
  if (targetParticipantId !== undefined) return [targetParticipantId];
  const target = blueprint.actions.find(({ id }) => id === targetActionId);
  return target === undefined ? [] : [target.sender];
}

function refuseLogic(fault: string) {
  return refusal('PIN_UNRESOLVABLE', { message: `JSON Logic of the definition has a fault: ${fault}` });
}

function keyOf(registerId: string, pin: string): string {
  return `${registerId}/${pin}`;
}

function keep<T>(kept: Map<string, T>, key: string, value: T): void {
  const [oldest] = kept.keys();
  if (kept.size >= MOST_KEPT && oldest !== undefined) kept.delete(oldest);
  kept.set(key, value);
}
