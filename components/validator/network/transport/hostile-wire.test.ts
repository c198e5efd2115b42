import 'reflect-metadata';
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { afterEach, describe, expect, test } from 'vitest';
import { type FixedWorkload, fixedWorkload } from '#kit/rpc/workload.fixture.ts';
import { createRandom } from '#kit/testing/random.ts';
import { waitFor } from '#kit/testing/wait.ts';
import {
  GetRecordsRequestSchema,
  StreamRequestSchema,
} from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import { openGrpcCluster } from '../../testing/grpc-cluster.ts';
import { registerId } from '../../testing/world.ts';

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const mebibyte = 1024 * 1024;
const streams = full ? 8_000 : 1_000;
const readers = full ? 1_000 : 100;
/** All four validators and the attacker share one process. */
const graceMs = 90_000;
/** RESOURCE_EXHAUSTED */
const tooMuch = '8';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const service = '/chancery.validator.v1.ConsensusService';

/** A gRPC frame; `length` may be false. */
function frame(bytes: Uint8Array, length: number = bytes.length): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(length >>> 0, 1);
  return Buffer.concat([head, bytes]);
}

/** An HTTP/2 client without gRPC's rules, with a valid certificate. */
function openSession(port: number, workload: FixedWorkload): ClientHttp2Session {
  const { key, cert, ca } = workload.current();
  const session = connect(`https://127.0.0.1:${port}`, {
    key,
    cert,
    ca,
    servername: 'chancery.internal',
    checkServerIdentity: () => undefined,
    // The test's own buffers are excluded.
    maxSessionMemory: 4_096,
  });
  session.on('error', () => {});
  closers.push(async () => session.destroy());
  return session;
}

function call(session: ClientHttp2Session, path: string, headers: object = {}): ClientHttp2Stream {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  stream.on('error', () => {});
  return stream;
}

/** How a call ended; undefined while it is open. */
function follow(stream: ClientHttp2Stream): { status: string | undefined; ended: boolean } {
  const found: { status: string | undefined; ended: boolean } = { status: undefined, ended: false };
  const note = (headers: object) => {
    const status = Object.entries(headers).find(([name]) => name === 'grpc-status')?.[1];
    if (status === undefined) return;
    found.status = String(status);
    found.ended = true;
  };
  stream.on('response', note);
  stream.on('trailers', note);
  stream.on('close', () => {
    found.ended = true;
  });
  stream.resume();
  return found;
}

const stored = frame(
  toBinary(
    StreamRequestSchema,
    create(StreamRequestSchema, { registerId, message: { case: 'stored', value: { height: 1n } } }),
  ),
);

/** Everything but valid calls: noise, false lengths, unknown methods, unexpected messages. */
function nonsense(session: ClientHttp2Session, seed: number) {
  const random = createRandom(seed);
  const bodies = [
    ...Array.from({ length: 40 }, () => frame(random.bytes(random.whole(0, 300)))),
    ...Array.from({ length: 20 }, () => Buffer.from(random.bytes(random.whole(0, 300)))),
    frame(new Uint8Array(5 * mebibyte)),
    frame(new Uint8Array(17 * mebibyte)),
    frame(new Uint8Array(10), 0xffffffff),
    frame(new Uint8Array(10), 5),
    Buffer.concat([Buffer.from([1]), stored.subarray(1)]),
    Buffer.concat([stored, stored, stored.subarray(0, 7)]),
    Buffer.alloc(0),
  ];
  const paths = ['Stream', 'GetCommit', 'GetRecords', 'GetEverything', ''];
  return bodies.flatMap((body, index) =>
    paths.slice(0, index < 10 ? paths.length : 3).map((method) => {
      const stream = call(
        session,
        `${service}/${method}`,
        index % 7 === 3 ? { 'grpc-encoding': 'gzip' } : {},
      );
      const found = follow(stream);
      stream.end(body);
      return found;
    }),
  );
}

describe('a validator\u2019s listener', { timeout: full ? 600_000 : 240_000 }, () => {
  test('survives everything that a member and an outsider can send, and the set continues sealing', async () => {
    const { authority, cluster, nodes } = await openGrpcCluster(4, closers);
    await cluster.begin();
    const large = 'x'.repeat(200_000);
    for (let index = 0; index < 20; index += 1) {
      await cluster.submit(cluster.member(index % 4), { payload: { index, large } });
    }
    await cluster.sealed(21, graceMs);
    const port = nodes.get('validator-0')?.port ?? 0;
    const target = cluster.member(0);
    const identities = {
      member: await fixedWorkload(authority, 'validator-3'),
      validator: await fixedWorkload(authority, 'validator-99'),
      service: await fixedWorkload(authority, 'service-wallet'),
    };

    const calls = Object.values(identities).flatMap((each, index) =>
      nonsense(openSession(port, each), index + 1),
    );
    await cluster.submit(target, { payload: { amid: 'nonsense' } });
    await cluster.sealed(22, graceMs);
    await waitFor(() => calls.filter(({ ended }) => !ended).length === 0, {
      what: 'the end of every call that is none',
      deadlineMs: graceMs,
    });
    expect(calls.filter(({ status }) => status === undefined).length).toBeLessThan(calls.length / 10);
    const charged = (id: string) =>
      target.runtime.lines.some((queue) => queue['validatorId'] === id && queue['reason'] === 'bytes');
    expect(charged('validator-3') && charged('validator-99')).toBe(true);
    expect(target.runtime.lines.some((queue) => queue['validatorId'] === 'validator-1')).toBe(false);

    const patient = [identities.member, identities.validator].flatMap((each) => [
      openSession(port, each),
      openSession(port, each),
    ]);
    const open = Array.from({ length: streams }, (_, index) => {
      const session = patient[index % patient.length];
      if (session === undefined) throw new Error('no session');
      const stream = call(session, `${service}/Stream`);
      stream.write(stored);
      return follow(stream);
    });
    await cluster.submit(target, { payload: { amid: 'streams' } });
    await cluster.sealed(23, graceMs);
    await waitFor(() => open.filter(({ ended }) => !ended).length <= 2 * 4, {
      what: 'streams that are too many to end',
      deadlineMs: graceMs,
    });

    const ids = cluster.ledger.dockets.flatMap(({ docket }) => docket.header.transactionIds);
    const transactionIds = ids.map((txId) => Buffer.from(txId, 'hex'));
    const query = frame(
      toBinary(GetRecordsRequestSchema, create(GetRecordsRequestSchema, { registerId, transactionIds })),
    );
    const reader = openSession(port, await fixedWorkload(authority, 'validator-2'));
    const refused = Array.from({ length: readers }, () => {
      const stream = call(reader, `${service}/GetRecords`);
      const found = { isRefused: false };
      stream.on('response', (headers) => {
        found.isRefused = headers['grpc-status'] === tooMuch;
      });
      stream.end(query);
      return found;
    });
    await cluster.submit(target, { payload: { amid: 'readers' } });
    await cluster.sealed(24, graceMs);
    await waitFor(() => refused.some(({ isRefused }) => isRefused), {
      what: 'one that reads nothing to be refused',
      deadlineMs: graceMs,
    });

    await cluster.submit(cluster.member(1), { payload: { last: 1 } });
    await cluster.sealed(25, graceMs);
    const failures = cluster.members.flatMap(({ runtime }) =>
      runtime.lines.filter(({ msg }) => msg === 'rpc failed'),
    );
    expect(failures).toEqual([]);
  });
});
