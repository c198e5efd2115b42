import type * as SignalR from '@microsoft/signalr';

/** What a client follows, and how. */
export interface FollowOptions {
  /** URL of the hub. */
  readonly url: string;
  readonly token: string;
  readonly registerId: string;
  readonly transport: 'WebSockets' | 'ServerSentEvents' | 'LongPolling';
}

/** What a client reports, in the order in which it happened. */
export type Report =
  | { readonly kind: 'subscribed'; readonly replayed: number; readonly complete: boolean }
  | { readonly kind: 'signal'; readonly target: string; readonly args: readonly (string | number)[] }
  | { readonly kind: 'reconnecting' }
  | { readonly kind: 'failed'; readonly message: string };

/**
 * Follows a register with a client that connects again by itself and asks for what it missed. This file runs in Node and,
 * without its types, in a browser; so it imports types only.
 */
export async function follow(
  library: typeof SignalR,
  { url, token, registerId, transport }: FollowOptions,
  report: (report: Report) => void,
): Promise<SignalR.HubConnection> {
  const connection = new library.HubConnectionBuilder()
    .withUrl(url, { accessTokenFactory: () => token, transport: library.HttpTransportType[transport] })
    .withAutomaticReconnect({ nextRetryDelayInMilliseconds: () => 500 })
    .configureLogging(library.LogLevel.None)
    .build();
  let seen: string | null = null;
  for (const target of ['DocketSealed', 'RegisterHeightUpdated', 'TransactionConfirmed']) {
    connection.on(target, (...args: (string | number)[]) => {
      seen = String(args[2]);
      report({ kind: 'signal', target, args });
    });
  }
  const failed = (error: unknown) => report({ kind: 'failed', message: String(error) });
  const subscribe = async () => {
    const answer = await connection.invoke('SubscribeToRegister', registerId, seen);
    report({ kind: 'subscribed', replayed: answer?.replayed ?? 0, complete: answer?.complete ?? true });
  };
  connection.onreconnecting(() => report({ kind: 'reconnecting' }));
  connection.onreconnected(() => void subscribe().catch(failed));
  await connection.start();
  await subscribe();
  return connection;
}
