import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '#kit/clock/clock.ts';
import type { Secret } from '#kit/config/config.ts';
import { createMailFolder, createSmtp } from './mail.ts';
import type { MessageTransports } from './message.ts';
import { createSmsFolder, createSmsWebhook } from './texts.ts';
import { parseWebhook } from './webhook.ts';

interface MessageSettings {
  readonly CHANCERY_MESSAGES_DIR?: string | undefined;
  readonly CHANCERY_MAIL_FROM: string;
  readonly CHANCERY_SMTP_URL_FILE?: Secret | undefined;
  readonly CHANCERY_SMS_WEBHOOK_FILE?: Secret | undefined;
}

/** The transports that the settings name; a folder, in local mode, takes both channels. */
export function createTransports(config: MessageSettings, clock: Clock): MessageTransports {
  const {
    CHANCERY_MESSAGES_DIR: folder,
    CHANCERY_MAIL_FROM: from,
    CHANCERY_SMTP_URL_FILE: smtp,
    CHANCERY_SMS_WEBHOOK_FILE: webhook,
  } = config;
  const folders = folder === undefined ? {} : createFolders(folder, from);
  return {
    ...folders,
    ...(smtp === undefined ? {} : { mail: createSmtp({ url: smtp.text().trim(), from }) }),
    ...(webhook === undefined
      ? {}
      : { sms: createSmsWebhook(parseWebhook(webhook.text()), () => clock.nowMs()) }),
  };
}

function createFolders(folder: string, from: string): MessageTransports {
  const [mails, texts] = [join(folder, 'mail'), join(folder, 'sms')];
  for (const directory of [mails, texts]) mkdirSync(directory, { recursive: true, mode: 0o700 });
  return { mail: createMailFolder(mails, from), sms: createSmsFolder(texts) };
}
