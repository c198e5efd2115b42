import { CONSENSUS_TYPES, type ConsensusMessage } from '#core/ledger/consensus.ts';
import { parseRegisterId } from '#core/ledger/register-id.ts';
import { invalid } from '../errors.ts';
import {
  type AttestationFields,
  attestationOf,
  type OpenedSigner,
  type SignConsensusDeps,
  signConsensus,
} from './sign-consensus.ts';

interface BatchRequest {
  readonly messages: readonly ConsensusMessage[];
  readonly attestation: AttestationFields | undefined;
}

interface SignedBatch {
  readonly signatures: readonly Uint8Array[];
  /** Empty without an attestation. */
  readonly attestationSignature: Uint8Array;
}

const maxMessages = Object.keys(CONSENSUS_TYPES).length;

/**
 * Signs the messages of a member about one docket in one round, and the attestation of the docket, in one commit: all or none.
 * @throws AppError invalid INVALID_REQUEST for messages that do not belong together, and as signConsensus
 */
export async function signBatch(
  deps: SignConsensusDeps,
  opened: OpenedSigner,
  { messages, attestation }: BatchRequest,
): Promise<SignedBatch> {
  const [first, ...later] = messages;
  if (first === undefined || messages.length > maxMessages)
    throw invalid('a batch has one to three messages');
  assertTogether(messages);
  if (attestation !== undefined) assertAbout(first, attestation);
  const attest = attestation && attestationOf(deps, opened, attestation);
  const signatures = await signConsensus(deps, opened, [first, ...later]);
  return { signatures, attestationSignature: attest?.() ?? new Uint8Array() };
}

/** All messages are of one network, register, set, height and round, about one docket, by rising type. */
function assertTogether(messages: readonly ConsensusMessage[]): void {
  if (messages.some(({ docket }) => docket === undefined)) throw invalid('a batch has no nil vote');
  if (new Set(messages.map(contextOf)).size > 1)
    throw invalid('the messages of a batch are not of one docket and round');
  const isRising = messages.every(({ type }, index) => type > (messages[index - 1]?.type ?? 0));
  if (!isRising) throw invalid('the messages of a batch are not in the order of their types');
}

function contextOf({
  networkId,
  registerId,
  height,
  round,
  docket,
  validatorSetHash,
}: ConsensusMessage): string {
  const roots = [docket?.docketHash, docket?.merkleRoot, docket?.logRoot];
  return JSON.stringify([networkId, parseRegisterId(registerId), height, round, validatorSetHash, ...roots]);
}

function assertAbout({ registerId, docket }: ConsensusMessage, attestation: AttestationFields): void {
  const isSame =
    parseRegisterId(attestation.registerId) === parseRegisterId(registerId) &&
    attestation.docketHash === docket?.docketHash;
  if (!isSame || !attestation.approved)
    throw invalid('the attestation does not approve the docket of the batch');
}
