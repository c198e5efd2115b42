import { readFileSync } from 'node:fs';
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2';
import { systemClock } from '#kit/clock/clock.ts';
import { createRpcClient, type RpcClient } from '#kit/rpc/rpc.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { connectWorkload, serviceSpiffeId } from '#kit/workload/workload.ts';
import { mintWithSvid } from './service-token.ts';
import type { LocalState } from './system.ts';

/** Environment of a process of an installation, by its name in `local.json`. Linux only. */
export function environmentOf(state: LocalState, name: string): Readonly<Record<string, string>> {
  const pid = state.processes.find((one) => one.name === name)?.pid;
  const entries = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean);
  return Object.fromEntries(
    entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
  );
}

/** Caller and service of a call; `token: false` leaves the caller's own service token out. */
export interface ServiceCall {
  readonly as: string;
  readonly server: string;
  readonly address: string;
  readonly token?: boolean;
}

const keptMs = 60_000;

/** Keeps a token for a minute, as services keep theirs; a token for each call would measure its verification. */
function keptToken(mint: () => Promise<string>): () => Promise<string> {
  let kept: { readonly token: Promise<string>; readonly untilMs: number } | undefined;
  return () => {
    const nowMs = performance.now();
    if (kept === undefined || kept.untilMs <= nowMs) {
      const token = mint();
      kept = { token, untilMs: nowMs + keptMs };
      token.catch(() => {
        kept = undefined;
      });
    }
    return kept.token;
  };
}

/** gRPC calls with an identity of the installation: its SVID and its service token. */
export async function connectService<S extends GenServiceMethods>(
  state: LocalState,
  service: GenService<S>,
  { as, server, address, token = true }: ServiceCall,
): Promise<{ client: RpcClient<S>; close(): void }> {
  const runtime = testRuntime('journey', { level: 'silent' });
  const workload = await connectWorkload({
    socket: state.spiffeSockets[as] ?? '',
    log: runtime.log,
    clock: systemClock(),
  });
  const client = createRpcClient(service, {
    address,
    workload,
    runtime,
    expect: serviceSpiffeId(state.installation, server),
    ...(token && { token: keptToken(async () => (await mintWithSvid(state, as)).token) }),
  });
  return {
    client,
    close: () => {
      client.close();
      workload.stop();
    },
  };
}
