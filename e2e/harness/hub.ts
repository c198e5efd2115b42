import { HttpTransportType, type HubConnection, HubConnectionBuilder, LogLevel } from '@microsoft/signalr';

/** Transports of the SignalR client. */
export const TRANSPORTS = ['WebSockets', 'ServerSentEvents', 'LongPolling'] as const;
export type Transport = (typeof TRANSPORTS)[number];

/** One signal that a client received. */
export interface Received {
  readonly target: string;
  readonly args: readonly unknown[];
  /** On the clock of `performance.now()`. */
  readonly atMs: number;
}

/** A client of a hub. */
export interface HubClient {
  /** The signals so far, in the order of their arrival. */
  readonly signals: readonly Received[];
  invoke(method: string, ...args: readonly unknown[]): Promise<unknown>;
  isClosed(): boolean;
  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>;
  stop(): Promise<void>;
}

interface ConnectOptions {
  readonly token: string;
  readonly transport: Transport;
  /** Events to listen to. */
  readonly targets: readonly string[];
  readonly onSignal?: (target: string, args: readonly unknown[]) => void;
}

/** Connects `@microsoft/signalr` over one transport, without reconnection. */
export async function connectHub(url: string | URL, options: ConnectOptions): Promise<HubClient> {
  const { token, transport, targets, onSignal } = options;
  const connection: HubConnection = new HubConnectionBuilder()
    .withUrl(String(url), { accessTokenFactory: () => token, transport: HttpTransportType[transport] })
    .configureLogging(LogLevel.None)
    .build();
  const signals: Received[] = [];
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  let isClosed = false;
  for (const target of targets) {
    connection.on(target, (...args: unknown[]) => {
      signals.push({ target, args, atMs: performance.now() });
      onSignal?.(target, args);
    });
  }
  connection.onclose(() => {
    isClosed = true;
    close();
  });
  await connection.start();
  return {
    signals,
    invoke: (method, ...args) => connection.invoke(method, ...args),
    isClosed: () => isClosed,
    closed,
    stop: () => connection.stop(),
  };
}
