/** The attachment of the next message: uploaded when chosen by button, drop or paste, and sent with the text. */

import { Problem } from './api';
import type { FileInfo } from './contract';
import type { Texts } from './texts';

export interface Attachment {
  readonly name: string;
  /** The uploaded file as described by the service. */
  readonly info: FileInfo | null;
  readonly fault: string | null;
  /** Upload progress in percent. */
  readonly percent: number;
}

export type Upload = (file: File, signal: AbortSignal, progress: (percent: number) => void) => Promise<FileInfo>;

export class Attaching {
  current: Attachment | null = null;
  private given = new AbortController();

  constructor(
    private readonly texts: Texts,
    private readonly upload: Upload,
    private readonly changed: () => void,
  ) {}

  async attach(file: File, limit: number): Promise<void> {
    this.detach();
    const { signal } = this.given;
    const shown: Attachment = { name: file.name, info: null, fault: null, percent: 0 };
    if (file.size > limit) {
      this.show({ ...shown, fault: this.texts.say('too_large', { size: this.texts.size(limit) }) }, signal);
      return;
    }
    this.show(shown, signal);
    try {
      const info = await this.upload(file, signal, (percent) => this.show({ ...shown, percent }, signal));
      this.show({ ...shown, name: info.name, info }, signal);
    } catch (problem) {
      const detail = problem instanceof Problem ? problem.detail : '';
      this.show({ ...shown, fault: detail || this.texts.say('upload_failed') }, signal);
    }
  }

  /** Remove the file and abort a running upload. */
  detach(): void {
    this.given.abort();
    this.given = new AbortController();
    this.current = null;
    this.changed();
  }

  private show(attachment: Attachment, signal: AbortSignal): void {
    if (signal.aborted) return; // The file has been replaced or removed in the meantime.
    this.current = attachment;
    this.changed();
  }
}
