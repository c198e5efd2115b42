import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, FastifyTypeProvider } from 'fastify';
import type { z } from 'zod';
import type { Caller, Restriction } from '#core/identity/claims.ts';
import type { PolicyName } from '#core/identity/policies.ts';
import type { RateLimitPolicy } from '#kit/rate-limit/policies.ts';
import type { DeclaredAnswers } from './declared-answers.ts';
import type { DeclaredRefusal } from './declared-refusals.ts';
import type { Observation } from './observe.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Policy that callers must pass. Every route has one. */
    policy?: PolicyName;
    /** On an anonymous route: a token that is sent is verified and identifies the caller. */
    optionalToken?: boolean;
    /**
     * A route of a hub: the token may be `access_token` of the query, because browsers send no header with a WebSocket
     * or an event stream; a caller that the policy refuses is answered 401.
     */
    hub?: boolean;
    /** Restrictions of tokens that the route accepts. */
    admits?: readonly Restriction[];
    /** Throughput limit of the route. */
    rateLimit?: RateLimitPolicy;
    /** Keeps the JSON text in `request.rawBody`; `only` also skips parsing it into `request.body`. */
    rawBody?: boolean | 'only';
    /** A body that the route accepts, for the reference. */
    example?: unknown;
    /** Declared successes; with `refusals`, what tests compare answers with. */
    answers?: DeclaredAnswers;
    /** Declared refusals, those that any route may answer included. */
    refusals?: readonly DeclaredRefusal[];
  }

  interface FastifyInstance {
    /** Paths of GET routes that accept WebSocket handshakes. */
    readonly webSocketPaths: Set<string>;
  }

  interface FastifyRequest {
    /** The authenticated caller; undefined for anonymous requests. */
    caller: Caller | undefined;
    /** Text of a JSON body, exactly as sent, for routes that request it. */
    rawBody: string | undefined;
    /** W3C trace id of the request. */
    readonly traceId: string;
    observation: Observation | undefined;
  }
}

/**
 * Connects the zod schemas of a route with the types of its request and answer. A handler may always send text or
 * bytes, or return the reply itself.
 */
export interface ZodTypes extends FastifyTypeProvider {
  validator: this['schema'] extends z.ZodType ? z.output<this['schema']> : unknown;
  serializer: this['schema'] extends z.ZodType
    ? z.output<this['schema']> | string | Uint8Array | SentReply
    : unknown;
}

/** The type that a FastifyReply has as a handler's return value. */
interface SentReply {
  then(fulfilled: () => void, rejected: (error: Error) => void): void;
}

/** An HTTP application of a component. Routes declare `config: { policy }` and zod schemas. */
export type App = FastifyInstance<Server, IncomingMessage, ServerResponse, FastifyBaseLogger, ZodTypes>;
