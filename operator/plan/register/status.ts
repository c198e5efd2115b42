import type { ConditionUpdate } from '../../api/conditions.ts';
import { MAX_PENDING_PROPOSALS, type RegisterStatus } from '../../api/register.ts';
import { defined } from '../outcome.ts';
import type { AggregateState } from './changes.ts';
import type { Aggregate, LedgerPhase, RegisterFacts } from './facts.ts';

const phases: Readonly<Record<LedgerPhase, NonNullable<RegisterStatus['phase']>>> = {
  Pending: 'Pending',
  AwaitingAttestations: 'AwaitingAttestations',
  GenesisSubmitted: 'GenesisSubmitted',
  Online: 'Online',
  Checking: 'Checking',
  Recovering: 'Recovering',
  Halted: 'Halted',
  Deleting: 'Deleting',
  Deleted: 'Deleting',
};

/** Whether docket 0 is sealed. */
export function hasStarted({ phase }: RegisterFacts): boolean {
  return phase !== 'Pending' && phase !== 'AwaitingAttestations' && phase !== 'GenesisSubmitted';
}

/** The status of an existing register. */
export function registerStatus(facts: RegisterFacts): RegisterStatus {
  const { size, quorum, faultTolerance, operational } = facts.validators;
  return {
    registerId: facts.registerId,
    phase: phases[facts.phase],
    height: facts.height,
    ...defined({
      genesisTransactionId: facts.genesisTransactionId,
      genesisHash: facts.genesisHash,
      headHash: facts.headHash,
      lastSealedTime: facts.lastSealedTime,
      sync: facts.sync,
    }),
    ...(facts.pendingAttestations.length === 0 ? {} : { pendingAttestations: attestations(facts) }),
    ...(hasStarted(facts) ? { policyVersion: facts.policyVersion } : {}),
    ...(facts.proposals.length === 0 ? {} : { pendingProposals: proposals(facts) }),
    ...(size === 0
      ? {}
      : { validators: { size, quorum, faultTolerance, operational, summary: `${operational}/${size}` } }),
    ...(hasStarted(facts) ? { mempool: { pending: facts.pendingTransactions } } : {}),
  };
}

function attestations({ pendingAttestations }: RegisterFacts) {
  return pendingAttestations.slice(0, 25).map(({ walletAddress, role, dataToSign, expiresAt }) => ({
    walletAddress,
    role,
    dataToSign: Buffer.from(dataToSign, 'hex').toString('base64'),
    ...defined({ expiresAt }),
  }));
}

function proposals({ proposals: all }: RegisterFacts) {
  return all
    .slice(0, MAX_PENDING_PROPOSALS)
    .map(({ proposalId, operationType, votesReceived, votesRequired, expiresAt }) => ({
      proposalId,
      operationType,
      votesReceived,
      votesRequired,
      ...defined({ expiresAt }),
    }));
}

function inForce(type: ConditionUpdate['type'], message: string): ConditionUpdate {
  return { type, status: 'True', reason: 'Reconciled', message };
}

/** Conditions of a register without a genesis transaction. */
export function pendingUpdates(message: string): readonly ConditionUpdate[] {
  const pending = (type: ConditionUpdate['type']): ConditionUpdate => ({
    type,
    status: type === 'AttestationsComplete' || type === 'GenesisSealed' ? 'False' : 'Unknown',
    reason: 'GenesisPending',
    message,
  });
  return [
    pending('AttestationsComplete'),
    pending('GenesisSealed'),
    pending('QuorumAvailable'),
    pending('Synced'),
    pending('PolicyInSync'),
    pending('DevModeInSync'),
    { type: 'Degraded', status: 'False', reason: 'GenesisPending', message },
    { type: 'Halted', status: 'False', reason: 'GenesisPending', message },
  ];
}

/** Conditions of a register with a genesis transaction. */
export function conditionUpdates(
  facts: RegisterFacts,
  states: readonly AggregateState[],
): readonly ConditionUpdate[] {
  const aggregate = (name: Aggregate) => states.find((each) => each.aggregate === name);
  return [
    inSync('AttestationsComplete', 'Every member of the first roster has signed', aggregate('members')),
    hasStarted(facts)
      ? inForce('GenesisSealed', 'Docket 0 is sealed')
      : {
          type: 'GenesisSealed',
          status: 'False',
          reason: 'GenesisPending',
          message: 'The genesis transaction waits to be sealed',
        },
    quorumAvailable(facts),
    synced(facts),
    inSync('PolicyInSync', 'The policy in force is the desired one', aggregate('policy')),
    inSync('DevModeInSync', 'The development mode is the desired one', aggregate('devMode')),
    degraded(facts),
    halted(facts),
  ];
}

function inSync(
  type: 'AttestationsComplete' | 'PolicyInSync' | 'DevModeInSync',
  good: string,
  states: AggregateState | undefined,
): ConditionUpdate {
  if (states?.difference === undefined) return inForce(type, good);
  const message =
    states.waitingFor === undefined ? states.difference : `${states.difference}: ${states.waitingFor}`;
  return { type, status: 'False', reason: states.isStalled ? 'PolicyRejected' : 'PolicyPending', message };
}

/** The validators that do not answer, for people. */
export function silentValidators({ validators }: RegisterFacts): string {
  const names = validators.members
    .filter(({ status, operational }) => status === 'Active' && !operational)
    .map(({ validatorId }) => validatorId);
  return names.length > 5 ? `${names.slice(0, 5).join(', ')} and ${names.length - 5} more` : names.join(', ');
}

export function hasQuorum({ validators }: RegisterFacts): boolean {
  return validators.size > 0 && validators.operational >= validators.quorum;
}

function quorumAvailable(facts: RegisterFacts): ConditionUpdate {
  const { operational, size, quorum } = facts.validators;
  if (hasQuorum(facts)) return inForce('QuorumAvailable', `At least ${quorum} of ${size} validators answer`);
  const message = `${operational} of ${size} validators answer and ${quorum} must agree; nothing is sealed. Silent: ${silentValidators(facts)}`;
  return { type: 'QuorumAvailable', status: 'False', reason: 'QuorumLost', message };
}

function synced({ sync }: RegisterFacts): ConditionUpdate {
  if (sync === undefined) {
    const message = 'The register service does not report its synchronisation';
    return { type: 'Synced', status: 'Unknown', reason: 'DependencyNotReady', message };
  }
  if (sync.status === 'Synced' && !sync.isStale)
    return inForce('Synced', 'The register service has every docket');
  const message = `The register service fetches missing dockets from validators${sync.isStale ? ', without progress' : ''}`;
  return { type: 'Synced', status: 'False', reason: 'Progressing', message };
}

function degraded(facts: RegisterFacts): ConditionUpdate {
  const { operational, size, quorum } = facts.validators;
  if (size === 0 || operational >= size) {
    return { type: 'Degraded', status: 'False', reason: 'Reconciled', message: 'Every validator answers' };
  }
  if (!hasQuorum(facts)) {
    const message = `Too few validators answer: ${operational} of ${size}`;
    return { type: 'Degraded', status: 'True', reason: 'QuorumLost', message };
  }
  const spare = operational - quorum;
  const rest = spare === 0 ? 'one more failure stops sealing' : `${spare} more may fail`;
  const message = `${operational} of ${size} validators answer, ${rest}. Silent: ${silentValidators(facts)}`;
  return {
    type: 'Degraded',
    status: 'True',
    reason: spare === 0 ? 'QuorumAtRisk' : 'DependencyNotReady',
    message,
  };
}

function halted({ phase, haltedReason }: RegisterFacts): ConditionUpdate {
  if (phase !== 'Halted') {
    return {
      type: 'Halted',
      status: 'False',
      reason: 'Reconciled',
      message: 'The register accepts transactions',
    };
  }
  const message = `${haltedReason ?? 'Two certificates for one docket were found'}; find the faulty validator, then resume the register with POST /api/admin/registers/{id}/resume-halted`;
  return { type: 'Halted', status: 'True', reason: 'QuorumAtRisk', message };
}
