/**
 * Argus for pi (made by `argus-hook install --client pi`; `argus-hook uninstall` takes it out).
 *
 * Hands pi's events to argus-hook, which redacts, reads the session's file and talks to the server.
 * pi waits for a handler as long as it takes and shows what it throws: so each wait here has an end
 * of its own, and nothing is thrown. A session without a file (`--no-session`, sub-agents) is left alone.
 */
import { spawn } from "node:child_process";
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

const PYTHON = "@PYTHON@";
const SCRIPT = "@SCRIPT@";

/** What a prompt may wait for what is recalled (argus-hook ends by itself after 2 s), and for an event to be handed over. */
const RECALL_MS = 3000;
const HAND_OVER_MS = 250;
/** pi has no cap of its own. The hook cuts at note borders far below; more than this is not ours. */
const TEXT_CHARACTERS_MAX = 8000;
const TEXT_BYTES_MAX = 9500;
const OUTPUT_BYTES_MAX = 65536;

type Row = Record<string, unknown>;

function start(verb: string, row: Row, output: "pipe" | "ignore") {
	const child = spawn(PYTHON, ["-I", "-S", SCRIPT, verb, "--client", "pi"], {
		stdio: ["pipe", output, "ignore"],
		detached: true,
		windowsHide: true,
	});
	child.on("error", () => {});
	child.stdin?.on("error", () => {});
	child.stdin?.end(JSON.stringify(row));
	child.unref();
	return child;
}

/** What the hook has to say, or "" when it says nothing, fails or takes too long. */
function ask(verb: string, row: Row, signal?: AbortSignal): Promise<string> {
	return new Promise((resolve) => {
		let over = () => {};
		try {
			const child = start(verb, row, "pipe");
			const chunks: Buffer[] = [];
			let size = 0;
			const done = (text: string) => {
				clearTimeout(timer);
				signal?.removeEventListener("abort", over);
				child.stdout?.destroy();
				resolve(text);
			};
			over = () => {
				child.kill("SIGKILL");
				done("");
			};
			const timer = setTimeout(over, RECALL_MS);
			signal?.addEventListener("abort", over);
			child.on("error", () => done(""));
			child.stdout?.on("error", () => done(""));
			child.stdout?.on("data", (chunk: Buffer) => {
				size += chunk.length;
				if (size > OUTPUT_BYTES_MAX) over();
				else chunks.push(chunk);
			});
			child.stdout?.on("end", () => done(additional(Buffer.concat(chunks).toString("utf8"))));
		} catch {
			resolve("");
		}
	});
}

function additional(output: string): string {
	try {
		const text = JSON.parse(output)?.hookSpecificOutput?.additionalContext;
		if (typeof text !== "string" || text.length > TEXT_CHARACTERS_MAX) return "";
		return Buffer.byteLength(text, "utf8") > TEXT_BYTES_MAX ? "" : text;
	} catch {
		return "";
	}
}

/** Hand an event over; waits for the pipe to take it, never for what is done with it. */
function tell(row: Row): Promise<void> {
	return new Promise((resolve) => {
		const timer = setTimeout(resolve, HAND_OVER_MS);
		const done = () => {
			clearTimeout(timer);
			resolve();
		};
		try {
			const child = start("capture", row, "ignore");
			child.on("error", done);
			child.stdin?.on("finish", done);
			child.stdin?.on("close", done);
		} catch {
			done();
		}
	});
}

/** What every event says of its session; undefined where nothing is kept of it. */
function about(name: string, ctx: any): Row | undefined {
	const sessions = ctx?.sessionManager;
	const file = sessions?.getSessionFile?.();
	const session = sessions?.getSessionId?.();
	if (!file || !session) return undefined;
	return { hook_event_name: name, session_id: session, transcript_path: file, cwd: ctx.cwd };
}

/** A user's message without its pictures; undefined when nothing is left. */
function words(message: any): Row | undefined {
	if (message?.role !== "user") return undefined;
	const parts = Array.isArray(message.content)
		? message.content.filter((part: any) => part?.type === "text")
		: [{ type: "text", text: String(message.content ?? "") }];
	const said = parts.some((part: any) => typeof part.text === "string" && part.text.trim());
	return said ? { role: "user", content: parts, timestamp: message.timestamp } : undefined;
}

export default function (pi: ExtensionAPI) {
	/** Whether the next prompt gets what a session begins with, and why it does. */
	let greeting: string | undefined = "startup";

	const on = (name: string, handle: (event: any, ctx: any) => Promise<unknown>) => {
		(pi as any).on(name, async (event: any, ctx: any) => {
			try {
				return await handle(event, ctx);
			} catch {
				return undefined;
			}
		});
	};

	on("session_start", async () => {
		greeting = "startup";
	});
	on("session_compact", async () => {
		greeting = "compact";
	});

	on("before_agent_start", async (event, ctx) => {
		const row = about("UserPromptSubmit", ctx);
		if (!row) return undefined;
		const asked = [ask("recall", { ...row, prompt: event.prompt }, ctx.signal)];
		if (greeting) {
			const entries = ctx.sessionManager.getEntries?.() ?? [];
			const known = entries.some((entry: any) => entry?.type === "message");
			const source = greeting === "startup" && known ? "resume" : greeting;
			const begin = { ...row, hook_event_name: "SessionStart", source };
			asked.unshift(ask("context", begin, ctx.signal));
			greeting = undefined;
		}
		const content = (await Promise.all(asked)).filter(Boolean).join("\n\n");
		if (!content) return undefined;
		return { message: { customType: "argus", content, display: false } };
	});

	on("message_end", async (event, ctx) => {
		// The file does not exist before the first answer: the words themselves are handed over.
		const message = words(event?.message);
		const row = message && about("message_end", ctx);
		if (row) await tell({ ...row, message });
	});
	for (const name of ["agent_end", "session_before_compact", "session_shutdown"]) {
		on(name, async (event, ctx) => {
			const row = about(name, ctx);
			if (row) await tell({ ...row, reason: event?.reason });
		});
	}
}
