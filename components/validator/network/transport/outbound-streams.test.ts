import 'reflect-metadata';
import { afterEach, describe, expect, it } from 'vitest';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { type FixedWorkload, fixedWorkload, memoryAuthority } from '#kit/rpc/workload.fixture.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { ConsensusService } from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import { type GrpcNode, listen, openGrpcCluster } from '../../testing/grpc-cluster.ts';
import { OutboundStreams } from './outbound-streams.ts';
import type { Envelope, Inbox } from './transport.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const registerId = 'ab'.repeat(16);
const hash = (byte: string) => byte.repeat(32);
const transactionIds = [hash('0b')];
const hint: Envelope = {
  kind: 'hint',
  registerId,
  transactionIds,
  transactions: [{ record: Buffer.from('{"a":1}'), payload: Buffer.from('{}'), payloadHashForm: 'jcs' }],
};
const value = { hash: hash('01'), merkleRoot: hash('02'), logRoot: hash('03') };
const timestamp = '2026-11-21T10:00:00.0000000+00:00';
const signed = { validatorId: 'validator-1', signature: Buffer.alloc(64, 7).toString('base64') };
const vote: Envelope = {
  kind: 'vote',
  registerId,
  vote: { kind: 'prevote', height: 4, round: 2, value, timestamp, ...signed },
};
const proposal: Envelope = {
  kind: 'proposal',
  registerId,
  proposal: {
    kind: 'proposal',
    height: 4,
    round: 2,
    polRound: -1,
    value: { ...value, timestamp },
    ...signed,
  },
  header: {
    registerId,
    docketNumber: 4,
    previousHash: hash('0a'),
    timestamp,
    validatorAddress: 'w1abc',
    transactionIds,
    merkleRoot: value.merkleRoot,
    logRoot: value.logRoot,
    validatorSetHash: hash('0d'),
    hash: value.hash,
    isGenesis: false,
    sizeBytes: 1234,
  },
  recordHashes: [hash('0e')],
};

describe('validators over gRPC', { timeout: 40_000 }, () => {
  it('seal one chain, also after one was down', async () => {
    const { cluster, nodes } = await openGrpcCluster(4, closers);
    await cluster.begin();
    for (let index = 0; index < 8; index += 1) {
      await cluster.submit(cluster.member(index % 4), {
        payload: { index, blob: 'x'.repeat(20_000 * index) },
      });
    }
    await cluster.sealed(9);
    await cluster.agreed();
    const away = cluster.member(3);
    await nodes.get(away.id)?.server?.stop();
    await cluster.stop(away);
    await cluster.submit(cluster.member(0), { payload: { away: 1 } });
    await cluster.sealed(10);
    await cluster.start(away);
    const node = nodes.get(away.id);
    if (node !== undefined) await listen(node, away.engine.peering);
    await cluster.submit(away, { payload: { back: 1 } });
    await cluster.sealed(11);
    await cluster.agreed();
    expect(cluster.member(0).engine.peering.operational(cluster.member(0).register.id)).toMatchObject(
      cluster.members.map(({ id }) => ({ validatorId: id, isOperational: true, version: 'test' })),
    );
  });

  it('accept only the sender that the certificate names, and penalise malformed messages', async () => {
    const authority = await memoryAuthority(testInstallation);
    const runtime = testRuntime('validator', { level: 'warn' });
    const heard: { from: string; envelope: Envelope }[] = [];
    const faults: string[] = [];
    const inbox: Inbox = {
      receive: (from, envelope) => void heard.push({ from, envelope }),
      connected: () => {},
      records: () => [],
      commit: () => undefined,
    };
    const workload = await fixedWorkload(authority, 'validator-0');
    const streams = new OutboundStreams({
      runtime,
      workload,
      findEndpoint: async () => undefined,
    });
    const node: GrpcNode = { streams, workload, server: undefined, port: 0 };
    await listen(node, inbox, { reportFault: (from) => void faults.push(from), isBanned: () => false });
    closers.push(async () => {
      streams.stop();
      await node.server?.stop();
    });
    const connect = (as: FixedWorkload) =>
      createRpcClient(ConsensusService, {
        address: `127.0.0.1:${node.port}`,
        workload: as,
        runtime,
        expect: `spiffe://${testInstallation}/service/validator-0`,
      });
    const peer = connect(await fixedWorkload(authority, 'validator-1'));
    const stream = await peer.stream.open();
    const beat = (validatorId: string) =>
      stream.send({
        message: { case: 'heartbeat', value: { validatorId, atMs: 1n, version: 'v', heads: [] } },
      });
    await beat('validator-2');
    await stream.send({ registerId: 'zz', message: { case: 'stored', value: { height: 1n } } });
    await stream.send({});
    await beat('validator-1');
    await waitFor(() => heard.length > 0);
    expect(heard).toEqual([
      {
        from: 'validator-1',
        envelope: {
          kind: 'heartbeat',
          registerId: '',
          validatorId: 'validator-1',
          atMs: 1,
          version: 'v',
          heads: [],
          draining: false,
        },
      },
    ]);
    expect(faults).toEqual(['validator-1', 'validator-1', 'validator-1']);
    await expect(peer.getCommit({ registerId: 'nonsense', height: 1n })).rejects.toMatchObject({
      kind: 'invalid',
    });
    expect(faults).toHaveLength(4);
    stream.cancel();
    peer.close();
    const stranger = connect(await fixedWorkload(authority, 'service-register'));
    await expect(stranger.getCommit({ registerId: 'ab'.repeat(16), height: 0n })).rejects.toMatchObject({
      kind: 'forbidden',
    });
    stranger.close();
  });

  it('deliver votes before announcements, and a proposal after the announcements it refers to', async () => {
    const authority = await memoryAuthority(testInstallation);
    const runtime = testRuntime('validator', { level: 'warn' });
    const heard: Envelope[] = [];
    const inbox: Inbox = {
      receive: (_, envelope) => void heard.push(envelope),
      connected: () => {},
      records: () => [],
      commit: () => undefined,
    };
    const open = async (id: string, endpoint?: () => string): Promise<GrpcNode> => {
      const workload = await fixedWorkload(authority, id);
      const findEndpoint = async () => endpoint?.();
      const streams = new OutboundStreams({ runtime, workload, findEndpoint });
      return { streams, workload, server: undefined, port: 0 };
    };
    const receiver = await open('validator-0');
    await listen(receiver, inbox);
    const sender = await open('validator-1', () => `127.0.0.1:${receiver.port}`);
    closers.push(async () => {
      sender.streams.stop();
      receiver.streams.stop();
      await receiver.server?.stop();
    });
    const others: Envelope = { ...hint, registerId: 'cd'.repeat(16) };
    for (const each of [others, hint, vote, proposal]) sender.streams.send('validator-0', each);
    await waitFor(() => heard.length === 4);
    expect(heard.map(({ kind, registerId: of }) => [kind, of === registerId])).toEqual([
      ['vote', true],
      ['hint', true],
      ['proposal', true],
      ['hint', false],
    ]);
  });
});
