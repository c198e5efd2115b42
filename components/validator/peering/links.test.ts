import 'reflect-metadata';
import { afterEach, describe, expect, it } from 'vitest';
import { createRpcClient, createRpcServer, type RpcServer } from '#kit/rpc/rpc.ts';
import { type FixedWorkload, fixedWorkload, memoryAuthority } from '#kit/rpc/workload.fixture.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { ConsensusService } from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import { Cluster, type Member } from '../testing/cluster.ts';
import { Links } from './links.ts';
import { consensusHandlers, isValidator } from './rpc.ts';
import type { Envelope, Inbox } from './transport.ts';

interface Node {
  readonly links: Links;
  readonly workload: FixedWorkload;
  server: RpcServer | undefined;
  port: number;
}

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Listens for other validators on a loopback port. */
async function listen(node: Node, inbox: Inbox, onFault: (from: string) => void = () => {}): Promise<void> {
  const server = createRpcServer({
    runtime: testRuntime('validator', { level: 'warn' }),
    workload: node.workload,
    host: '127.0.0.1',
    port: node.port,
  });
  const onStream = (from: string) => node.links.nudge(from);
  server.add(ConsensusService, consensusHandlers({ inbox, onStream, onFault }), { allow: isValidator });
  node.port = await server.listen();
  node.server = server;
}

/** A cluster whose members speak gRPC over mutual TLS. */
async function openWired(size: number): Promise<{ cluster: Cluster; nodes: Map<string, Node> }> {
  const authority = await memoryAuthority(testInstallation);
  const cluster = new Cluster(size);
  const nodes = new Map<string, Node>();
  for (const { id, runtime } of cluster.members) {
    const workload = await fixedWorkload(authority, id);
    const links = new Links({
      runtime,
      workload,
      findEndpoint: async (other) => {
        const port = nodes.get(other)?.port ?? 0;
        return port === 0 ? undefined : `127.0.0.1:${port}`;
      },
      onConnected: (other) =>
        cluster.members.find((each) => each.id === id)?.opened?.peering.connected(other),
    });
    nodes.set(id, { links, workload, server: undefined, port: 0 });
  }
  const nodeOf = (member: Member): Node => {
    const node = nodes.get(member.id);
    if (node === undefined) throw new Error('no such node');
    return node;
  };
  cluster.transportOf = (member) => nodeOf(member).links;
  await cluster.open();
  for (const member of cluster.members) await listen(nodeOf(member), member.engine.peering);
  closers.push(async () => {
    for (const { links, server } of nodes.values()) {
      links.stop();
      await server?.stop();
    }
    await cluster.remove();
  });
  return { cluster, nodes };
}

describe('validators over gRPC', { timeout: 40_000 }, () => {
  it('seal one chain, also after one was away', async () => {
    const { cluster, nodes } = await openWired(4);
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

  it('hear only whom the certificate names, and charge who sends nonsense', async () => {
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
    const links = new Links({
      runtime,
      workload,
      findEndpoint: async () => undefined,
      onConnected: () => {},
    });
    const node: Node = { links, workload, server: undefined, port: 0 };
    await listen(node, inbox, (from) => void faults.push(from));
    closers.push(async () => {
      links.stop();
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
});
