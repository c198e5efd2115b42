import { randomUUID } from 'node:crypto';
import type { JsonObject } from '#core/encoding/json.ts';
import type { Caller } from '#core/identity/claims.ts';
import { refusal } from '../../errors.ts';
import {
  createDraft,
  type DraftDeps,
  etagOf,
  getDraft,
  organizationOf,
  replaceDraft,
} from '../drafts/drafts.ts';
import type { DraftBody } from '../drafts/schemas.ts';
import type { Draft } from '../drafts/store.ts';
import { parseDefinition } from './definition.ts';
import type { ChatMessage } from './provider.ts';

/** Messages that a session may be sent. */
const mostMessages = 100;
/** UTF-16 code units of the messages and answers that a session keeps. */
const mostCharacters = 1_000_000;

/** A conversation about one draft, in the memory of this replica, and the definition that it works on. */
export class ChatSession {
  readonly id: string = randomUUID();
  readonly #organizationId: string;
  readonly #messages: ChatMessage[] = [];
  #draft: { readonly id: string; readonly revision: number } | undefined;
  /** JSON text, which takes less memory than its objects. */
  #definition: string | undefined;
  #sent = 0;
  #characters = 0;
  /** Cancels the answer that is under way. */
  #answering: AbortController | undefined;

  private constructor(caller: Caller) {
    this.#organizationId = organizationOf(caller);
  }

  /**
   * A session about a draft of the caller's organisation, or about a new one.
   *
   * Errors: forbidden/ORGANIZATION_REQUIRED, not_found/BLUEPRINT_NOT_FOUND.
   */
  static async start(deps: DraftDeps, caller: Caller, draftId: string | undefined): Promise<ChatSession> {
    const session = new ChatSession(caller);
    if (draftId !== undefined) session.#keep(await getDraft(deps, caller, draftId));
    return session;
  }

  /** Whether it is a session of the caller: a later token of the user may be one of another organisation. */
  isOf({ organizationId }: Caller): boolean {
    return organizationId === this.#organizationId;
  }

  get messages(): readonly ChatMessage[] {
    return this.#messages;
  }

  get definition(): JsonObject | undefined {
    return this.#definition === undefined ? undefined : JSON.parse(this.#definition);
  }

  /** Errors: conflict/CHAT_NO_DEFINITION. */
  getDefinition(): JsonObject {
    const { definition } = this;
    if (definition === undefined) throw refusal('CHAT_NO_DEFINITION');
    return definition;
  }

  /** Replaces the definition that the session works on, which the draft has when it is saved. */
  change(definition: DraftBody): void {
    this.#definition = JSON.stringify(definition);
  }

  /**
   * Stores the definition of the session, or a given one, as the draft.
   *
   * Errors: conflict/CHAT_ANSWERING, conflict/CHAT_NO_DEFINITION, those of parseDefinition, createDraft and replaceDraft:
   * a draft that was changed elsewhere meanwhile is not overwritten.
   * @returns id of the draft
   */
  async save(deps: DraftDeps, caller: Caller, given: JsonObject | undefined): Promise<string> {
    this.assertIdle();
    const body = parseDefinition(given ?? this.getDefinition());
    const draft =
      this.#draft === undefined
        ? await createDraft(deps, caller, body)
        : await replaceDraft(deps, await getDraft(deps, caller, this.#draft.id), {
            body,
            ifMatch: etagOf(this.#draft.revision),
          });
    this.#keep(draft);
    return draft.id;
  }

  /** Errors: conflict/CHAT_ANSWERING. */
  assertIdle(): void {
    if (this.#answering !== undefined) throw refusal('CHAT_ANSWERING');
  }

  hasRoomFor(text: string): boolean {
    return this.#sent < mostMessages && this.#characters + text.length <= mostCharacters;
  }

  /** Counts a message; returns the number of those that are left. */
  count(): number {
    this.#sent += 1;
    return mostMessages - this.#sent;
  }

  /** Begins the answer to a message; further ones are refused until `finish`. */
  begin(): AbortSignal {
    this.#answering = new AbortController();
    return this.#answering.signal;
  }

  /** Ends the answer; the turn becomes part of the conversation when there is one. */
  finish(turn: { readonly text: string; readonly reply: string } | undefined): void {
    this.#answering = undefined;
    if (turn === undefined) return;
    this.#messages.push({ role: 'user', text: turn.text }, { role: 'assistant', text: turn.reply });
    this.#characters += turn.text.length + turn.reply.length;
  }

  /** Errors: conflict/CHAT_NOT_ANSWERING. */
  cancel(): void {
    if (this.#answering === undefined) throw refusal('CHAT_NOT_ANSWERING');
    this.#answering.abort();
  }

  end(): void {
    this.#answering?.abort();
  }

  #keep({ id, revision, definition }: Draft): void {
    this.#draft = { id, revision };
    this.#definition = definition;
  }
}
