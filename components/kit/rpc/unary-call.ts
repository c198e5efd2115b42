import { type Client, Metadata, type ServiceError } from '@grpc/grpc-js';
import { followSignal } from './client-stream.ts';
import { fromStatus } from './status.ts';
import { asIs } from './wire.ts';

/** What a client sends beside the messages of a call. */
export interface CallHeaders {
  readonly authorization: string | undefined;
  readonly subjectToken: string | undefined;
  readonly traceparent: string | undefined;
}

/** A unary call in the form that every transport takes. */
export interface UnaryCall {
  /** `/package.Service/Method` */
  readonly path: string;
  readonly request: Buffer;
  readonly headers: CallHeaders;
  /** Milliseconds since the epoch. */
  readonly deadline: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/** The headers as gRPC metadata. */
export function metadataOf({ authorization, subjectToken, traceparent }: CallHeaders): Metadata {
  const metadata = new Metadata();
  if (authorization !== undefined) metadata.set('authorization', authorization);
  if (subjectToken !== undefined) metadata.set('x-subject-token', subjectToken);
  if (traceparent !== undefined) metadata.set('traceparent', traceparent);
  return metadata;
}

/** Makes the call as a gRPC call of its own. */
export async function callPlainly(client: Client, call: UnaryCall): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const { path, request, headers, deadline, signal } = call;
  const bounds = deadline === undefined ? {} : { deadline };
  const sent = client.makeUnaryRequest(
    path,
    asIs,
    asIs,
    request,
    metadataOf(headers),
    bounds,
    (error: ServiceError | null, response?: Buffer) => {
      if (error !== null) reject(fromStatus(error));
      else resolve(response ?? Buffer.alloc(0));
    },
  );
  const forget = followSignal(sent, signal);
  try {
    return await promise;
  } finally {
    forget();
  }
}
