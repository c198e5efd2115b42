import type { RpcClient } from '#kit/rpc/rpc.ts';
import { SubmissionService } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { connectService } from '../harness/service-caller.ts';
import { type Contestant, cpuRow, type Figures, interleave, none, rawCpuSeconds } from './contest.ts';
import { post, storedPerSecond, storedRaw } from './load.ts';
import { batchesByHttp, packedBy, type Send } from './ours.ts';
import { startRawInstallation } from './raw/installation.ts';
import type { Row } from './report.ts';
import { rawSettings, type Stage } from './stage.ts';

/** Below the capacity of a register's pool, so that nothing is refused. */
const perRound = 8_000;
const rounds = 3;
/** Ten seconds of such load each, so that a service that has run for a while is measured. */
const warmUp = 5;
/** Batches in flight. */
const inFlight = 4;

type Submissions = RpcClient<typeof SubmissionService.method>;

/** Sends batches on one stream until none is left; throws unless every batch is accepted completely. */
async function drain(client: Submissions, left: (readonly string[])[]): Promise<void> {
  const stream = await client.submitBatches.open();
  const answers = stream.responses[Symbol.asyncIterator]();
  for (let batch = left.shift(); batch !== undefined; batch = left.shift()) {
    await stream.send({ submissionsJson: batch.map((text) => Buffer.from(text)) });
    const { value } = await answers.next();
    const refused = value?.answers.find(({ status }: { status: number }) => status !== 200);
    if (value === undefined || refused !== undefined) {
      throw new Error(`a batch was refused: ${Buffer.from(refused?.bodyJson ?? []).toString()}`);
    }
  }
  stream.close();
}

/** `SubmitBatches` at the validator's gRPC listener, with a stream for each batch in flight. */
async function byStream(stage: Stage): Promise<{ readonly send: Send; close(): void }> {
  const [validator] = stage.system.state.validators;
  const { client, close } = await connectService(stage.system.state, SubmissionService, {
    as: 'service-register',
    server: validator?.validatorId ?? '',
    address: validator?.grpc ?? '',
  });
  return {
    send: (batches) => {
      const left = [...batches];
      return Promise.all(Array.from({ length: inFlight }, () => drain(client, left)));
    },
    close,
  };
}

export interface RawLedger extends Contestant {
  stop(): Promise<void>;
}

/** The raw ledger with transactions from its own memory: no hop, nothing to parse. */
export async function rawFromMemory(stage: Stage, validators: number): Promise<RawLedger> {
  const raw = await startRawInstallation(rawSettings(stage, 'packed', validators));
  const bare = stage.pool(raw.validatorUrls[0] ?? '', 1);
  const store = stage.pool(raw.storeUrl, 1);
  return {
    perSecond: async (bodies) => {
      await post(bare, '/load', '', bodies.join('\n'));
      return storedPerSecond(
        bodies.length,
        () => storedRaw(store),
        () => post(bare, '/feed', '', ''),
      );
    },
    cpuSeconds: () => rawCpuSeconds(stage, raw),
    stop: async () => {
      await Promise.all([bare.close(), store.close()]);
      await raw.stop();
    },
  };
}

/** Both routes for batches, and the raw ledger. */
async function contest(stage: Stage): Promise<readonly Figures[]> {
  const raw = await rawFromMemory(stage, 1);
  const pool = stage.pool(stage.validatorUrls()[0] ?? '', inFlight);
  const stream = await byStream(stage);
  try {
    const http = batchesByHttp(stage, [pool], inFlight);
    const rivals = [packedBy(stage, http), raw, packedBy(stage, stream.send)];
    return await interleave(rivals, { perRound, rounds, warmUp, registerOf: () => stage.registerId });
  } finally {
    stream.close();
    await pool.close();
    await raw.stop();
  }
}

/** One validator, batches of 1,000, four in flight. */
export async function packed(stage: Stage): Promise<readonly Row[]> {
  const [http = none, raw = none, stream = none] = await contest(stage);
  const row = (measure: string, figures: Figures): Row => ({
    measure,
    ours: figures.perSecond,
    raw: raw.perSecond,
    unit: '/s',
    bound: { kind: 'share', atLeast: 0.6 },
  });
  return [
    row('packed path: confirmed tx/s, batch route', http),
    row('packed path: confirmed tx/s, gRPC stream', stream),
    cpuRow('packed path: CPU of all processes per transaction', http, raw),
  ];
}
