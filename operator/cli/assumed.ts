import { validatorId } from '../api/names.ts';
import type { Register } from '../api/register.ts';
import type { Tenant } from '../api/tenant.ts';
import type { ValidatorSet } from '../api/validator-set.ts';
import { validatorNumbers } from '../plan/register/apply-change.ts';
import type { LedgerPhase, RegisterFacts, ValidatorFacts } from '../plan/register/facts.ts';
import type { OrganizationFacts } from '../plan/tenant/facts.ts';

/**
 * State of the services, derived from live objects without any call. The spec of a live object is assumed to be carried
 * out; the rest is taken from its status.
 */
export function organizationOf(live: Tenant | undefined): OrganizationFacts | undefined {
  if (live === undefined) return undefined;
  const { organizationId, state, userCount = 0 } = live.status;
  if (organizationId === undefined) return undefined;
  const { displayName: name, subdomain, organizationType, branding = {} } = live.spec;
  const found = state === undefined || state === 'Pending' ? 'Active' : state;
  return { organizationId, state: found, name, subdomain, organizationType, branding, userCount };
}

/** The Tenant with an organisation, so that objects that refer to it can be planned. */
export function asReady(tenant: Tenant): Tenant {
  const { organizationId = '00000000-0000-4000-8000-000000000000' } = tenant.status;
  return { ...tenant, status: { ...tenant.status, organizationId, state: 'Active' } };
}

/** The set with all members running. */
export function asRunning(set: ValidatorSet): ValidatorSet {
  const { name } = set.metadata;
  const members = Array.from({ length: set.spec.replicas }, (_, ordinal) => ({
    name: `${name}-${ordinal}`,
    ordinal,
    validatorId: validatorId(`${name}-${ordinal}`),
    phase: 'KeyReady' as const,
    ready: true,
  }));
  return { ...set, status: { ...set.status, members } };
}

/** The register of a live object; undefined when it has none yet. */
export function registerOf(
  live: Register | undefined,
  sets: readonly ValidatorSet[],
): RegisterFacts | undefined {
  const { registerId } = live?.status ?? {};
  if (live === undefined || registerId === undefined) return undefined;
  const { spec, status } = live;
  const admins = spec.admins ?? [];
  return {
    registerId,
    phase: phaseOf(live),
    title: spec.title,
    description: spec.description,
    devMode: spec.devMode,
    metadata: spec.metadata ?? {},
    height: status.height ?? 0,
    pendingAttestations: [],
    roster: admins.map(({ walletAddress, role }) => ({ walletAddress, role })),
    operatorRole: 'Owner',
    policyVersion: status.policyVersion ?? 1,
    policy: spec.policy ?? {},
    proposals: (status.pendingProposals ?? []).map((each) => ({
      proposalId: each.proposalId,
      operationType: each.operationType ?? '',
      votesReceived: each.votesReceived ?? 0,
      votesRequired: each.votesRequired ?? 0,
      votedByOperator: true,
    })),
    outstanding: [],
    validators: validatorNumbers(validatorsOf(live, sets), spec.policy?.consensus?.signatureThresholdMin),
    validation: spec.validation,
    pendingTransactions: status.mempool?.pending ?? 0,
    isReplicatedElsewhere: false,
  };
}

function phaseOf({ status }: Register): LedgerPhase {
  const { phase } = status;
  return phase === undefined || phase === 'Failed' ? 'Pending' : phase;
}

/** Members that report the register; without any, as many of its set as its status counts. */
function validatorsOf(
  { spec, status, metadata }: Register,
  sets: readonly ValidatorSet[],
): readonly ValidatorFacts[] {
  const here = sets.filter((set) => set.metadata.namespace === metadata.namespace);
  const telling = here
    .flatMap((set) => set.status.members ?? [])
    .filter(({ registers }) => registers?.some(({ registerId }) => registerId === status.registerId))
    .flatMap(({ validatorId: id, ready }) =>
      id === undefined ? [] : [{ validatorId: id, status: 'Active' as const, operational: ready !== false }],
    );
  if (telling.length > 0) return telling;
  const { size = 0, operational = size } = status.validators ?? {};
  return Array.from({ length: size }, (_, ordinal) => ({
    validatorId: validatorId(`${spec.validatorSetRef.name}-${ordinal}`),
    status: 'Active',
    operational: ordinal < operational,
  }));
}
