import type { RegisterSpec } from '../api/register.ts';
import type { DesiredRegister, RegisterChange, RegisterFacts } from '../plan/register/facts.ts';
import { isRefusal } from './refusals.ts';
import { actedSchema, changedSchema, countSchema, removedSchema, statusSchema } from './register-answers.ts';
import type { Service } from './transport.ts';

/** What became of a change: it takes effect by its own docket, or others must vote first. */
export interface Changed {
  readonly txId?: string | undefined;
  readonly proposalId?: string | undefined;
}

/** The register service as the operator uses it. Every act may be repeated; errors are those of Service.call. */
export interface Registers {
  /** The register that stands for a resource; a deleted one still answers. */
  find(resourceUid: string, signal?: AbortSignal): Promise<RegisterFacts | undefined>;
  /** Takes the register of a resource as far as it goes: draft, attestation, genesis; never a second one for one uid. */
  upsert(resourceUid: string, desired: DesiredRegister, signal?: AbortSignal): Promise<RegisterFacts>;
  /** Asks the ledger for one change; the same one again while it is under way is refused with CHANGE_OUTSTANDING. */
  change(resourceUid: string, change: RegisterChange, signal?: AbortSignal): Promise<Changed>;
  /** Lets all validators work on a register, or keeps them from it. */
  setValidation(resourceUid: string, state: RegisterSpec['validation'], signal?: AbortSignal): Promise<void>;
  /** How many registers an organisation sees. */
  count(organizationId: string, signal?: AbortSignal): Promise<number>;
  /** Ends what a resource has to do with its register; does nothing for an unknown uid. */
  remove(resourceUid: string, policy: RegisterSpec['deletionPolicy'], signal?: AbortSignal): Promise<void>;
}

const root = '/api/internal/registers';

/** The register service over HTTP; see Registers. */
export function registersOf(service: Service): Registers {
  const at = (uid: string) => `${root}/${encodeURIComponent(uid)}`;
  return {
    find: async (resourceUid, signal) => {
      try {
        return await service.call({ method: 'GET', path: at(resourceUid), signal }, statusSchema);
      } catch (error) {
        if (isRefusal(error, 'REGISTER_NOT_FOUND')) return undefined;
        throw error;
      }
    },
    upsert: (resourceUid, desired, signal) =>
      service.call({ method: 'PUT', path: at(resourceUid), body: desired, signal }, statusSchema),
    change: (resourceUid, change, signal) =>
      service.call(
        { method: 'POST', path: `${at(resourceUid)}/changes`, body: change, signal },
        changedSchema,
      ),
    setValidation: async (resourceUid, state, signal) => {
      const path = `${at(resourceUid)}/validation`;
      await service.call({ method: 'PUT', path, body: { state }, signal }, actedSchema);
    },
    count: async (organizationId, signal) => {
      const path = `/api/internal/organizations/${encodeURIComponent(organizationId)}/registers/count`;
      return (await service.call({ method: 'GET', path, signal }, countSchema)).count;
    },
    remove: async (resourceUid, policy, signal) => {
      const path = `${at(resourceUid)}?policy=${policy}`;
      await service.call({ method: 'DELETE', path, signal }, removedSchema);
    },
  };
}
