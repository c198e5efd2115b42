import type { MessageInitShape } from '@bufbuild/protobuf';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { type AppError, isAppError } from '#core/errors/errors.ts';
import { CONSENSUS_TYPES, type ConsensusMessage, type ConsensusType } from '#core/ledger/consensus.ts';
import type {
  SignConsensusRequest,
  SignConsensusResponseSchema,
  ConsensusMessage as WireConsensus,
} from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { invalid } from '../errors.ts';
import type { SystemKey } from './keys.ts';
import { Lanes } from './lanes.ts';
import type { SigningCaller } from './rules.ts';
import { signBatch } from './sign-batch.ts';
import {
  nextKey,
  type OpenedSigner,
  openSigner,
  type SignConsensusDeps,
  signAttestation,
  signConsensus,
  signCosignature,
  signPossession,
  usingKey,
} from './sign-consensus.ts';
import { signSuspension } from './sign-suspension.ts';

type Response = MessageInitShape<typeof SignConsensusResponseSchema>;

const maxInFlight = 64;

/**
 * The stream of one validator: an open message with its identity, then typed messages. Messages of one register are
 * signed in order, registers concurrently, so that one database commit serves many. A fenced stream gets SIGNER_FENCED
 * and ends.
 */
export async function* serveSigner(
  deps: SignConsensusDeps,
  caller: SigningCaller,
  requests: AsyncIterable<SignConsensusRequest>,
): AsyncGenerator<Response, void, undefined> {
  const arrivals = requests[Symbol.asyncIterator]();
  const first = await arrivals.next();
  if (first.done === true) return;
  const { requestId } = first.value;
  let opened: OpenedSigner;
  try {
    opened = await openFirst(deps, caller, first.value);
  } catch (error) {
    yield refusalOf(requestId, error);
    return;
  }
  const { epoch } = opened;
  const value = {
    epoch,
    key: wireKey(opened.key),
    newestKey: wireKey(opened.newestKey),
    signsBatches: true,
  };
  yield { requestId, result: { case: 'opened', value } };
  const lanes = new Lanes<Response>(maxInFlight);
  // Not awaited: the call that delivers the requests ends only after this generator.
  void admitAll(deps, opened, arrivals, lanes);
  try {
    yield* lanes;
  } finally {
    lanes.end();
  }
}

function wireKey({ signer, address }: SystemKey) {
  return {
    publicKey: encodeBase64(signer.publicKey),
    algorithm: signer.algorithm,
    walletAddress: address,
  };
}

async function openFirst(
  deps: SignConsensusDeps,
  caller: SigningCaller,
  request: SignConsensusRequest,
): Promise<OpenedSigner> {
  if (request.message.case !== 'open') throw invalid('the first message of a stream must open the signer');
  return openSigner(deps, caller, request.message.value);
}

// Never throws: an error of the request stream ends the lanes, and their reader throws it.
async function admitAll(
  deps: SignConsensusDeps,
  opened: OpenedSigner,
  arrivals: AsyncIterator<SignConsensusRequest>,
  lanes: Lanes<Response>,
): Promise<void> {
  try {
    for (let next = await arrivals.next(); next.done !== true; next = await arrivals.next()) {
      if (lanes.ended) return;
      const request = next.value;
      await lanes.admit(registerOf(request), () => answer(deps, opened, request, () => lanes.end()));
    }
    lanes.end();
  } catch (error) {
    lanes.end(error);
  }
}

async function answer(
  deps: SignConsensusDeps,
  opened: OpenedSigner,
  request: SignConsensusRequest,
  fence: () => void,
): Promise<Response> {
  const { requestId, message } = request;
  try {
    if (message.case === 'nextKey') {
      const key = await nextKey(deps, opened, message.value.afterPublicKey);
      return { requestId, result: { case: 'key', value: wireKey(key) } };
    }
    const using = await usingKey(deps, opened, request.publicKey);
    if (message.case === 'batch') {
      const { messages, attestation } = message.value;
      const batch = await signBatch(deps, using, { messages: messages.map(parseMessage), attestation });
      return { requestId, result: { case: 'batch', value: { ...batch, signatures: [...batch.signatures] } } };
    }
    const signature = await sign(deps, using, message);
    return { requestId, result: { case: 'signed', value: { signature } } };
  } catch (error) {
    if (isAppError(error) && error.code === 'SIGNER_FENCED') fence();
    return refusalOf(requestId, error);
  }
}

async function sign(
  deps: SignConsensusDeps,
  opened: OpenedSigner,
  message: SignConsensusRequest['message'],
): Promise<Uint8Array> {
  switch (message.case) {
    case 'consensus': {
      const [signature] = await signConsensus(deps, opened, [parseMessage(message.value)]);
      return signature ?? new Uint8Array();
    }
    case 'attestation':
      return signAttestation(deps, opened, message.value);
    case 'possession':
      return signPossession(deps, opened, message.value);
    case 'cosignature':
      return signCosignature(deps, opened, message.value);
    case 'suspension':
      return signSuspension(deps, opened, message.value);
    case 'open':
      throw invalid('the signer is already open');
    default:
      throw invalid('the message has no known type');
  }
}

const messageTypes: readonly number[] = Object.values(CONSENSUS_TYPES);

function parseMessage(wire: WireConsensus): ConsensusMessage {
  if (!messageTypes.includes(wire.type)) throw invalid('the type is not proposal, prevote or precommit');
  if (wire.height > BigInt(Number.MAX_SAFE_INTEGER)) throw invalid('the height is out of range');
  const { docketHash, merkleRoot, logRoot } = wire;
  const nil = docketHash === '' && merkleRoot === '' && logRoot === '';
  return {
    type: wire.type as ConsensusType,
    networkId: wire.networkId,
    registerId: wire.registerId,
    height: Number(wire.height),
    round: wire.round,
    polRound: wire.polRound,
    docket: nil ? undefined : { docketHash, merkleRoot, logRoot },
    validatorSetHash: wire.validatorSetHash,
    timestamp: wire.timestamp,
  };
}

function registerOf({ message }: SignConsensusRequest): string {
  if (message.case === 'batch') return message.value.messages[0]?.registerId.toLowerCase() ?? '';
  return message.value !== undefined && 'registerId' in message.value
    ? message.value.registerId.toLowerCase()
    : '';
}

const streamCodes: readonly string[] = [
  'DOUBLE_SIGN_REFUSED',
  'SIGNER_FENCED',
  'SIGNING_KEY_UNKNOWN',
  'SIGNING_KEYS_EXHAUSTED',
  'RATE_LIMITED',
];

// A refusal is sent as an answer; any other error, such as an unavailable database, ends the stream.
function refusalOf(requestId: bigint, error: unknown): Response {
  if (!isAppError(error)) throw error;
  const code = refusalCode(error);
  if (code === undefined) throw error;
  return { requestId, result: { case: 'refusal', value: { code, message: error.message } } };
}

function refusalCode(error: AppError): string | undefined {
  if (streamCodes.includes(error.code)) return error.code;
  if (error.kind === 'forbidden' || error.code === 'WALLET_LOCKED') return 'SIGNING_NOT_ALLOWED';
  return error.kind === 'invalid' ? 'INVALID_REQUEST' : undefined;
}
