import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import {
  type HubClient,
  type HubLimits,
  type HubMethod,
  hubMethod,
  type MethodHubDeclaration,
} from '#kit/hub/hub.ts';
import type { RateLimiter } from '#kit/rate-limit/rate-limit.ts';
import type { BlueprintDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { exportFormats } from '../../evaluation/export.ts';
import type { DraftJudge } from '../../evaluation/pool.ts';
import type { DraftDeps } from '../drafts/drafts.ts';
import { blueprintIdSchema } from '../drafts/schemas.ts';
import { type AnswerDeps, answerMessage } from './answer.ts';
import { sendChatEvent } from './events.ts';
import { ChatSession } from './session.ts';

export interface ChatDeps extends DraftDeps, AnswerDeps {
  readonly limiter: Pick<RateLimiter, 'take'>;
  readonly judge: Pick<DraftJudge, 'judge' | 'export'>;
}

/** Path of the chat hub. */
export const chatHubPath = '/hubs/chat';

/**
 * Its bounds: a definition may be sent as one record, behind which small ones may wait. A connection may take several MiB
 * besides its session, so that there are fewer of them than of other hubs.
 */
export const chatHubLimits = {
  recordBytes: 1024 * 1024,
  messageBytes: 1088 * 1024,
  waitingBytes: 1088 * 1024,
  closeBytes: 3 * 1024 * 1024,
  connectionsPerUser: 4,
  connectionsPerReplica: 100,
} as const satisfies Partial<HubLimits>;

/** Messages that are left when the first warning is sent. */
const warnedMessages = 10;

const sessionId = z.uuid();
const message = z
  .string()
  .max(10_000)
  .refine((text) => text.trim() !== '' && text.isWellFormed());
const definition = z.custom<JsonObject>(isJsonObject);

/** The hub in which people design a draft with a language model. Its events have content, unlike those of other hubs. */
export function chatHub(deps: ChatDeps): MethodHubDeclaration<BlueprintDatabase> {
  const sessions: Sessions = new WeakMap();
  return {
    path: chatHubPath,
    policy: 'CanManageBlueprints',
    methods: [
      ...lifeMethods(deps, sessions),
      ...messageMethods(deps, sessions),
      ...draftMethods(deps, sessions),
    ],
    limiter: deps.limiter,
    db: deps.db.read,
    limits: chatHubLimits,
  };
}

/** The session of a connection, which ends with it. */
type Sessions = WeakMap<HubClient, ChatSession>;

/** Errors: gone/CHAT_SESSION_UNKNOWN. */
function getSession(sessions: Sessions, client: HubClient, id: string): ChatSession {
  const session = sessions.get(client);
  if (session?.id !== id || !session.isOf(client.caller)) throw refusal('CHAT_SESSION_UNKNOWN');
  return session;
}

function lifeMethods(deps: ChatDeps, sessions: Sessions): readonly HubMethod[] {
  return [
    hubMethod({
      name: 'StartSession',
      parameters: 'draftId?',
      arguments: z.tuple([blueprintIdSchema.nullish()]),
      run: async ({ client }, [draftId]) => {
        const open = sessions.get(client);
        if (open?.isOf(client.caller) === true) throw refusal('CHAT_SESSION_OPEN');
        open?.end();
        const session = await ChatSession.start(deps, client.caller, draftId ?? undefined);
        sessions.set(client, session);
        sendChatEvent(client, 'SessionStarted', [session.id, session.definition ?? null, 0]);
        return session.id;
      },
    }),
    hubMethod({
      name: 'EndSession',
      parameters: 'sessionId',
      arguments: z.tuple([sessionId]),
      run: async ({ client }, [id]) => {
        getSession(sessions, client, id).end();
        sessions.delete(client);
        return null;
      },
    }),
  ];
}

function messageMethods(deps: ChatDeps, sessions: Sessions): readonly HubMethod[] {
  return [
    hubMethod({
      name: 'SendMessage',
      parameters: 'sessionId, message',
      arguments: z.tuple([sessionId, message]),
      isStreamed: true,
      run: async ({ client, stream }, [id, text]) => {
        const session = getSession(sessions, client, id);
        countMessage(client, session, text);
        const messageId = randomUUID();
        const answering = { session, client, messageId, text };
        if (stream === undefined) {
          const sendChunk = (part: string) => sendChatEvent(client, 'ReceiveChunk', [part]);
          void answerMessage(deps, { ...answering, sendChunk, unwanted: [client.ended] });
          return messageId;
        }
        const sendChunk = (part: string) => stream.send(part);
        const failure = await answerMessage(deps, { ...answering, sendChunk, unwanted: [stream.cancelled] });
        if (failure !== undefined) throw failure;
        return messageId;
      },
    }),
    hubMethod({
      name: 'CancelGeneration',
      parameters: 'sessionId',
      arguments: z.tuple([sessionId]),
      run: async ({ client }, [id]) => {
        getSession(sessions, client, id).cancel();
        return null;
      },
    }),
  ];
}

/** Counts a message of a session, with a warning when few are left; errors: CHAT_ANSWERING, MESSAGE_LIMIT. */
function countMessage(client: HubClient, session: ChatSession, text: string): void {
  session.assertIdle();
  if (!session.hasRoomFor(text)) {
    const full = refusal('MESSAGE_LIMIT');
    sendChatEvent(client, 'SessionError', [full.code, full.message]);
    throw full;
  }
  const left = session.count();
  if (left <= warnedMessages) sendChatEvent(client, 'MessageLimitWarning', [left]);
}

function draftMethods(deps: ChatDeps, sessions: Sessions): readonly HubMethod[] {
  return [
    hubMethod({
      name: 'SaveBlueprint',
      parameters: 'sessionId, definition?',
      arguments: z.tuple([sessionId, definition.nullish()]),
      run: async ({ client }, [id, given]) =>
        await getSession(sessions, client, id).save(deps, client.caller, given ?? undefined),
    }),
    hubMethod({
      name: 'ExportBlueprint',
      parameters: "sessionId, 'json' | 'yaml'",
      arguments: z.tuple([sessionId, z.enum(exportFormats)]),
      run: async ({ client }, [id, format]) =>
        await deps.judge.export(getSession(sessions, client, id).getDefinition(), format),
    }),
  ];
}
