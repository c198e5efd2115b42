import type { Condition } from '../api/object.ts';
import type { Disruption } from '../plan/outcome.ts';
import type { Entry, Step } from './entry.ts';
import { keyOf, type Objects } from './objects.ts';

const disruptions: Readonly<Record<Disruption, string>> = {
  none: '',
  'sign-in-stops': 'members of the organisation cannot sign in',
  'sealing-stops': 'no dockets are sealed meanwhile',
  'data-deleted': 'data is deleted',
};

function stepLine({ summary, disruption }: Step, at: number): string {
  const warning = disruptions[disruption];
  return `  ${at + 1}. ${summary}${warning === '' ? '' : `  [${warning}]`}`;
}

function entryLines({ kind, key, steps, notes, refused }: Entry): readonly string[] {
  const count = steps.length === 1 ? '1 step' : `${steps.length} steps`;
  const summary =
    steps.length === 0 ? (refused === undefined ? 'no changes' : 'cannot be changed as requested') : count;
  return [
    `${kind} ${key}: ${summary}`,
    ...notes.map((note) => `  ${note}`),
    ...steps.map(stepLine),
    ...(refused === undefined ? [] : [`  ! ${refused}`]),
    '',
  ];
}

/** Text of a plan. */
export function planText(entries: readonly Entry[]): string {
  const steps = entries.flatMap((entry) => entry.steps);
  const costs = [
    ...new Set(steps.map(({ disruption }) => disruptions[disruption]).filter((each) => each !== '')),
  ];
  const refused = entries.filter((entry) => entry.refused !== undefined).length;
  const end = [
    `${entries.length} objects, ${steps.length} steps`,
    ...(refused === 0 ? [] : [`${refused} cannot reach the desired state`]),
    costs.length === 0 ? 'nothing is disrupted' : `disrupted: ${costs.join(', ')}`,
  ];
  return `${[...entries.flatMap(entryLines), end.join('; ')].join('\n')}\n`;
}

interface ReportedObject {
  readonly kind: string;
  readonly metadata: { readonly namespace: string; readonly name: string };
  readonly status: { readonly conditions?: readonly Condition[] | undefined };
}

function conditionOf({ status }: ReportedObject, type: string): Condition | undefined {
  return status.conditions?.find((each) => each.type === type);
}

/** Types whose status True is bad. */
const bad = new Set([
  'Stalled',
  'Reconciling',
  'Degraded',
  'Halted',
  'EquivocationDetected',
  'StorageResizing',
]);

function objectLines(object: ReportedObject, facts: readonly string[]): readonly string[] {
  const ready = conditionOf(object, 'Ready');
  const state = ready === undefined ? 'not reconciled by the operator yet' : readiness(ready);
  const others = (object.status.conditions ?? []).filter(({ type, status }) => {
    const isNews = bad.has(type) ? status !== 'False' : status !== 'True';
    return isNews && type !== 'Ready' && type !== 'Reconciling' && type !== 'Stalled';
  });
  return [
    `${object.kind} ${keyOf(object)}: ${state}`,
    ...facts.map((fact) => `  ${fact}`),
    ...others.map(({ type, status, message }) => `  ${type}=${status}: ${message}`),
    '',
  ];
}

function readiness({ status, reason, message }: Condition): string {
  return status === 'True' ? `ready (${reason})` : `not ready (${reason}): ${message}`;
}

/** Text of the status of objects. */
export function statusText({ tenants, validatorSets, registers }: Objects): string {
  const lines = [
    ...tenants.flatMap((each) => objectLines(each, tenantFacts(each))),
    ...validatorSets.flatMap((each) => objectLines(each, setFacts(each))),
    ...registers.flatMap((each) => objectLines(each, registerFacts(each))),
  ];
  const all: readonly ReportedObject[] = [...tenants, ...validatorSets, ...registers];
  const readyCount = all.filter((each) => conditionOf(each, 'Ready')?.status === 'True').length;
  return `${[...lines, `${readyCount} of ${all.length} objects are ready`].join('\n')}\n`;
}

function tenantFacts({ spec, status }: Objects['tenants'][number]): readonly string[] {
  const { organizationId = 'none yet', state = 'Pending', userCount = 0, registerCount } = status;
  const seen = registerCount === undefined ? '' : `, ${registerCount} registers`;
  return [
    `organisation ${organizationId} (${state}), subdomain ${spec.subdomain}, ${userCount} users${seen}`,
  ];
}

function setFacts({ spec, status }: Objects['validatorSets'][number]): readonly string[] {
  const {
    readyReplicas = 0,
    updatedReplicas = 0,
    quorum = 0,
    faultTolerance = 0,
    version = 'unknown',
  } = status;
  const members = (status.members ?? []).map(({ name, phase = 'Provisioning', ready, registers = [] }) => {
    const behind = Math.max(0, ...registers.map((each) => each.behind ?? 0));
    return `${name} ${phase}${ready === true ? '' : ', not ready'}${behind > 0 ? `, ${behind} dockets behind` : ''}`;
  });
  return [
    `${readyReplicas} of ${spec.replicas} ready, ${updatedReplicas} up to date, version ${version}`,
    ...(quorum === 0
      ? []
      : [`quorum ${quorum}, tolerates ${faultTolerance}: ${spareText(readyReplicas - quorum)}`]),
    ...members,
  ];
}

function registerFacts({ status }: Objects['registers'][number]): readonly string[] {
  const { registerId = 'none yet', phase = 'Pending', height = 0, policyVersion = 0, validators } = status;
  const { size = 0, quorum = 0, operational = 0, faultTolerance = 0 } = validators ?? {};
  const proposals = (status.pendingProposals ?? []).map(
    ({ proposalId, operationType = 'change', votesReceived = 0, votesRequired = 0 }) =>
      `proposal ${proposalId} (${operationType}): ${votesReceived} of ${votesRequired} votes`,
  );
  const signatures = (status.pendingAttestations ?? []).map(
    ({ walletAddress, role }) => `waits for the signature of ${walletAddress} as ${role}`,
  );
  return [
    `register ${registerId} (${phase}), height ${height}, policy version ${policyVersion}`,
    ...(size === 0
      ? []
      : [
          `${operational} of ${size} validators answer, quorum ${quorum}, tolerates ${faultTolerance}: ${spareText(operational - quorum)}`,
        ]),
    ...signatures,
    ...proposals,
  ];
}

function spareText(spare: number): string {
  if (spare < 0) return `${-spare} too few to seal`;
  return spare === 0 ? 'one more failure stops sealing' : `${spare} more may fail`;
}
