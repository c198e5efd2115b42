import { compileWorkflow, type Workflow } from '#core/blueprint/steps/workflow.ts';
import { isJsonObject } from '#core/encoding/json.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { findPayload, findPublished } from './store.ts';

/** Loads the workflows of pins; a pin that no stored docket publishes is absent. */
export type LoadWorkflows = (
  registerNo: number,
  pins: readonly string[],
) => Promise<ReadonlyMap<string, Workflow | undefined>>;

interface CachedWorkflow {
  /** undefined for a definition that is no workflow */
  readonly workflow: Workflow | undefined;
  readonly bytes: number;
}

/** Bytes of the definitions of cached workflows. */
const mostBytes = 32 * 1024 * 1024;

/** A publication never changes, so what was compiled stays valid; the one that was used least recently gives way. */
export function createLoadWorkflows(db: Reader<RegisterSchema>): LoadWorkflows {
  const cache = new Map<string, CachedWorkflow>();
  let bytes = 0;

  function keep(key: string, one: CachedWorkflow): void {
    const known = cache.get(key);
    if (known !== undefined) bytes -= known.bytes;
    cache.delete(key);
    cache.set(key, one);
    bytes += one.bytes;
    for (const [oldest, { bytes: freed }] of cache) {
      if (bytes <= mostBytes || oldest === key) break;
      cache.delete(oldest);
      bytes -= freed;
    }
  }

  async function load(registerNo: number, pin: string): Promise<CachedWorkflow | undefined> {
    const key = `${registerNo}/${pin}`;
    const one = cache.get(key) ?? (await compiled(db, registerNo, pin));
    if (one !== undefined) keep(key, one);
    return one;
  }

  return async (registerNo, pins) => {
    const workflows = new Map<string, Workflow | undefined>();
    for (const pin of pins) {
      const one = await load(registerNo, pin);
      if (one !== undefined) workflows.set(pin, one.workflow);
    }
    return workflows;
  };
}

async function compiled(
  db: Reader<RegisterSchema>,
  registerNo: number,
  pin: string,
): Promise<CachedWorkflow | undefined> {
  const version = await findPublished(db, registerNo, pin);
  if (version === undefined) return undefined;
  const payload = await findPayload(db, registerNo, version);
  if (payload === undefined)
    throw new AppError('internal', 'INTERNAL_ERROR', `The payload of publication ${pin} is missing.`);
  const { definition } = JSON.parse(payload.toString()) as { readonly definition?: unknown };
  return {
    workflow: isJsonObject(definition) ? compileWorkflow(definition) : undefined,
    bytes: payload.length,
  };
}
