"""HAKMEM from outside: runs programs on it, and shows what a program does with memory."""
