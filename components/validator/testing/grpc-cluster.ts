import { createRpcServer, type RpcServer } from '#kit/rpc/rpc.ts';
import { type FixedWorkload, fixedWorkload, memoryAuthority } from '#kit/rpc/workload.fixture.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { ConsensusService } from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import { OutboundStreams } from '../network/transport/outbound-streams.ts';
import type { PeerScore } from '../network/transport/peer-score.ts';
import { consensusHandlers, consensusRules } from '../network/transport/rpc.ts';
import type { Inbox } from '../network/transport/transport.ts';
import { Cluster, type Member } from './cluster.ts';

/** The network side of a validator. */
export interface GrpcNode {
  readonly streams: OutboundStreams;
  readonly workload: FixedWorkload;
  server: RpcServer | undefined;
  port: number;
}

const quiet: Pick<PeerScore, 'reportFault' | 'isBanned'> = { reportFault: () => {}, isBanned: () => false };

/** Listens for other validators on a loopback port. */
export async function listen(
  node: GrpcNode,
  inbox: Inbox,
  peerScore: Pick<PeerScore, 'reportFault' | 'isBanned'> = quiet,
): Promise<void> {
  const server = createRpcServer({
    runtime: testRuntime('validator', { level: 'warn' }),
    workload: node.workload,
    host: '127.0.0.1',
    port: node.port,
  });
  const onStream = (from: string) => node.streams.resetBackoff(from);
  server.add(ConsensusService, consensusHandlers({ inbox, onStream, peerScore }), consensusRules(peerScore));
  node.port = await server.listen();
  node.server = server;
}

/** A cluster whose members communicate by gRPC over mutual TLS; `closers` receives its cleanup. */
export async function openGrpcCluster(size: number, closers: (() => Promise<void>)[]) {
  const authority = await memoryAuthority(testInstallation);
  const cluster = new Cluster(size);
  const nodes = new Map<string, GrpcNode>();
  for (const { id, runtime } of cluster.members) {
    const workload = await fixedWorkload(authority, id);
    const streams = new OutboundStreams({
      runtime,
      workload,
      findEndpoint: async (other) => {
        const port = nodes.get(other)?.port ?? 0;
        return port === 0 ? undefined : `127.0.0.1:${port}`;
      },
    });
    streams.onConnected((other) =>
      cluster.members.find((each) => each.id === id)?.opened?.peering.connected(other),
    );
    nodes.set(id, { streams, workload, server: undefined, port: 0 });
  }
  const nodeOf = (member: Member): GrpcNode => {
    const node = nodes.get(member.id);
    if (node === undefined) throw new Error('no such node');
    return node;
  };
  cluster.transportOf = (member) => nodeOf(member).streams;
  await cluster.open();
  for (const member of cluster.members) {
    const { peering } = member.engine;
    await listen(nodeOf(member), peering, peering.peerScore);
  }
  closers.push(async () => {
    for (const { streams, server } of nodes.values()) {
      streams.stop();
      await server?.stop();
    }
    await cluster.remove();
  });
  return { authority, cluster, nodes };
}
