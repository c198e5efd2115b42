import type { ChatHubArguments, ChatHubEvent } from '#core/events/hub-events.ts';
import type { HubClient } from '#kit/hub/hub.ts';

/** Sends an event of the chat hub to the connection of a session. */
export function sendChatEvent<E extends ChatHubEvent>(
  client: Pick<HubClient, 'sendEvent'>,
  event: E,
  args: ChatHubArguments<E>,
): void {
  client.sendEvent(event, args);
}
