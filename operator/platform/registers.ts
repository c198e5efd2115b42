import type { RegisterSpec } from '../api/register.ts';
import type { DesiredRegister, RegisterChange, RegisterFacts } from '../plan/register/facts.ts';
import { isRefusal } from './refusals.ts';
import { actedSchema, changedSchema, countSchema, removedSchema, statusSchema } from './register-answers.ts';
import type { Service } from './transport.ts';

/** Result of a change: a transaction, or a proposal that needs votes. */
interface Changed {
  readonly txId?: string | undefined;
  readonly proposalId?: string | undefined;
}

/** The register service as the operator uses it. Calls are idempotent; errors are those of Service.call. */
export interface Registers {
  /** The register of a resource; also a deleted one. */
  find(resourceUid: string, signal?: AbortSignal): Promise<RegisterFacts | undefined>;
  /** Drafts the register of a resource and submits its genesis once it is attested; never two registers for one uid. */
  upsert(resourceUid: string, desired: DesiredRegister, signal?: AbortSignal): Promise<RegisterFacts>;
  /** Requests one change; while it is outstanding, a repetition is refused with CHANGE_OUTSTANDING. */
  change(resourceUid: string, change: RegisterChange, signal?: AbortSignal): Promise<Changed>;
  /** Sets the validation state of a register at all validators. */
  setValidation(resourceUid: string, state: RegisterSpec['validation'], signal?: AbortSignal): Promise<void>;
  /** Number of registers of an organisation. */
  count(organizationId: string, signal?: AbortSignal): Promise<number>;
  /** Unbinds the register of a resource by the deletion policy; an unknown uid is not an error. */
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
