import { Readable } from 'node:stream';
import { z } from 'zod';
import { problemSchema } from './problem.ts';
import type { ReadonlyDeep } from './readonly.ts';

/** One answer of a route: what its status means, its media type and its body. */
interface DeclaredAnswer<Body> {
  readonly description: string;
  /** Undefined: the answer has no body. */
  readonly mediaType: string | undefined;
  readonly schema: z.ZodType;
  /** Schemas of further media types that clients may ask for. */
  readonly otherTypes?: Readonly<Record<string, z.ZodType>>;
  /** Headers that the handler may set, with their descriptions; for the reference. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Never set; carries the type of the body. */
  readonly body?: Body;
}

/** Answers of a route by status, successes only: refusals are declared by their codes. */
export type DeclaredAnswers = Readonly<Record<number, DeclaredAnswer<unknown>>>;

/**
 * A JSON answer. Its members are those of the schema; a member that is undefined is left out.
 *
 * @param headers descriptions of headers that the handler may set, by lower-case name
 */
export function json<S extends z.ZodType>(
  description: string,
  schema: S,
  headers: Readonly<Record<string, string>> = {},
): DeclaredAnswer<ReadonlyDeep<z.output<S>> | JsonText> {
  return { description, mediaType: 'application/json', schema, headers };
}

/**
 * An answer of another media type, as text, bytes or a stream of them.
 *
 * @param otherTypes schemas of further media types that clients may ask for; the handler names the one that it sends
 */
export function media(
  mediaType: string,
  description: string,
  otherTypes: Readonly<Record<string, z.ZodType>> = {},
): DeclaredAnswer<string | Uint8Array | Readable> {
  return { description, mediaType, schema: z.string(), otherTypes };
}

/** An answer without a body. */
export function empty(description: string): DeclaredAnswer<void> {
  return { description, mediaType: undefined, schema: z.undefined() };
}

/** JSON that is written already, such as a stored record whose bytes are hashed. */
interface JsonText {
  readonly jsonText: string | Uint8Array;
}

/** Marks text or bytes as the JSON of an answer; they are sent unchanged. */
export function jsonText(text: string | Uint8Array): JsonText {
  return { jsonText: text };
}

const mark = Symbol('answer');

/** The answer of a handler whose route declares several, or that sets headers. */
export interface Answer<Status extends number, Body> {
  readonly [mark]: true;
  readonly status: Status;
  readonly body: Body;
  readonly headers: AnswerHeaders;
}

export type AnswerHeaders = Readonly<Record<string, string | undefined>>;

/** Answers with one of the declared statuses. Headers that are undefined are left out. */
export function answer<const Status extends number, Body>(
  status: Status,
  body: Body,
  headers: AnswerHeaders = {},
): Answer<Status, Body> {
  return { [mark]: true, status, body, headers };
}

const problemMark = Symbol('problem');

/** A refusal that is answered, not thrown. */
export interface ProblemAnswer {
  readonly [problemMark]: true;
  readonly problemStatus: number;
  readonly problem: Readonly<Record<string, unknown>>;
  readonly headers: AnswerHeaders;
}

/**
 * Answers a refusal whose problem is complete, such as the answer of another process; its code is declared among the
 * refusals of the route. Routes throw their refusals: this is for requests that are refused too often to pay for an
 * exception.
 */
export function problemAnswer(
  problemStatus: number,
  problem: Readonly<Record<string, unknown>>,
  headers: AnswerHeaders = {},
): ProblemAnswer {
  return { [problemMark]: true, problemStatus, problem, headers };
}

/** Whether a handler returned a refusal. */
export function isProblemAnswer(value: unknown): value is ProblemAnswer {
  return typeof value === 'object' && value !== null && problemMark in value;
}

/** Whether a handler returned an answer and not the body of the only one that its route declares. */
export function isAnswer(value: unknown): value is Answer<number, unknown> {
  return typeof value === 'object' && value !== null && mark in value;
}

/** The answers that a handler may return; the body alone where exactly one is declared. */
export type Outcome<A extends DeclaredAnswers> =
  | ProblemAnswer
  | { [S in keyof A & number]: Answer<S, BodyOf<A[S]>> }[keyof A & number]
  | (IsUnion<keyof A> extends true ? never : BodyOf<A[keyof A & number]>);

type BodyOf<D> = D extends DeclaredAnswer<infer Body> ? Body : never;
type IsUnion<T, Whole = T> = T extends unknown ? ([Whole] extends [T] ? false : true) : never;

/** The answers as `schema.response`, for the reference. */
export function documentedAnswers(answers: DeclaredAnswers): Readonly<Record<string, object>> {
  const documented = Object.entries(answers).map(([status, declared]) => [
    status,
    declared.mediaType === undefined
      ? declared.schema.describe(declared.description)
      : {
          description: declared.description,
          content: contentOf(declared, declared.mediaType),
          ...headersOf(declared),
        },
  ]);
  return Object.fromEntries(documented);
}

function headersOf({ headers = {} }: DeclaredAnswer<unknown>): object {
  const described = Object.entries(headers).map(([name, description]) => [
    name,
    { type: 'string', description },
  ]);
  return described.length === 0 ? {} : { headers: Object.fromEntries(described) };
}

function contentOf({ schema, otherTypes }: DeclaredAnswer<unknown>, mediaType: string): object {
  const types = Object.entries({ [mediaType]: schema, ...otherTypes });
  return Object.fromEntries(types.map(([type, of]) => [type, { schema: of }]));
}

/** What is sent for the body of an answer: text, bytes, a stream, or undefined for no body. */
export function writtenBody(
  declared: DeclaredAnswer<unknown>,
  body: unknown,
): string | Uint8Array | Readable | undefined {
  if (declared.mediaType === undefined) return undefined;
  if (isJsonText(body)) return body.jsonText;
  const isWritten =
    declared.mediaType !== 'application/json' &&
    (typeof body === 'string' || body instanceof Uint8Array || body instanceof Readable);
  return isWritten ? body : JSON.stringify(body);
}

function isJsonText(body: unknown): body is JsonText {
  return typeof body === 'object' && body !== null && Object.hasOwn(body, 'jsonText');
}

/**
 * What contradicts the schema of a JSON answer: texts of the schema, or members that it does not declare. Undefined when
 * the answer is as declared.
 */
export function contradictionOf(declared: DeclaredAnswer<unknown>, written: string): string | undefined {
  const value: unknown = JSON.parse(written);
  const result = declared.schema.safeParse(value);
  if (!result.success) return z.prettifyError(result.error);
  const undeclared = undeclaredMembers(value, result.data, '');
  return undeclared.length === 0 ? undefined : `undeclared members ${undeclared.join(', ')}`;
}

/** Members that a schema removed from a value while parsing it, as it does not declare them. */
function undeclaredMembers(value: unknown, parsed: unknown, path: string): string[] {
  if (typeof value !== 'object' || value === null || typeof parsed !== 'object' || parsed === null) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    Object.hasOwn(parsed, name)
      ? undeclaredMembers(member, Reflect.get(parsed, name), `${path}/${name}`)
      : [`${path}/${name}`],
  );
}

/**
 * Refusals of a route whose protocol has its own error format. A request that is refused before the route handles it is
 * still answered with a problem.
 */
export function errorAnswer(schema: z.ZodType): object {
  const content = { 'application/json': { schema }, 'application/problem+json': { schema: problemSchema } };
  return { description: 'Refusal', content };
}
