import { z } from 'zod';

const webhookSchema = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  secret: z.string().min(16),
});

/** Where text messages are posted, and the secret that signs them. */
export type Webhook = z.output<typeof webhookSchema>;

/** @param text JSON `{"url", "secret"}` @throws ZodError, SyntaxError */
export function parseWebhook(text: string): Webhook {
  return webhookSchema.parse(JSON.parse(text));
}

export function isWebhook(text: string): boolean {
  try {
    parseWebhook(text);
    return true;
  } catch {
    return false;
  }
}
